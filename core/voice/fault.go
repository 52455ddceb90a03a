package voice

import "errors"

// ErrQuota is returned when a user has used up the transcription time of a day.
var ErrQuota = errors.New("the transcription time of today is used up; it begins again at midnight UTC")

// ErrDay is returned for a recording that is longer than what a user may have transcribed on a
// day.
var ErrDay = errors.New("the recording is longer than the transcription time of a day")

// Codes of faults.
const (
	FaultEngine  = "engine"  // the transcription failed
	FaultOff     = "off"     // no transcription is set up
	FaultFormat  = "format"  // the format is not read here
	FaultDamaged = "damaged" // the recording is damaged or gone
	FaultLarge   = "large"   // more than 20 MB
	FaultLong    = "long"    // more than MaxLength
	FaultDay     = "day"     // more than the user's transcription time of a whole day
	FaultQuota   = "quota"   // the user's transcription time of today is used up
)

// Faults are all codes.
var Faults = []string{FaultEngine, FaultOff, FaultFormat, FaultDamaged, FaultLarge, FaultLong, FaultDay, FaultQuota}

// A Fault is why a recording was not transcribed.
type Fault struct {
	Code string
	Err  error
}

func (f *Fault) Error() string { return f.Err.Error() }

func (f *Fault) Unwrap() error { return f.Err }

// Passes reports whether the same recording may be transcribed later.
func (f *Fault) Passes() bool {
	return f.Code == FaultEngine || f.Code == FaultOff || f.Code == FaultFormat || f.Code == FaultQuota
}
