package walk

import (
	"regexp"
	"sync"
)

// privileged programs run others with another user's rights.
var privileged = map[string]bool{
	"sudo": true, "sudoedit": true, "sudo-rs": true, "doas": true, "su": true, "pkexec": true, "run0": true, "runuser": true,
	"gosu": true, "su-exec": true, "setpriv": true, "visudo": true, "sudo_root": true, "dzdo": true, "kdesu": true, "gksu": true, "gksudo": true,
}

// Privileged reports whether the program of that name runs others with another
// user's rights.
func Privileged(name string) bool { return privileged[name] }

// device are names that write to a disk or to memory itself.
var device = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/+dev/+(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|dm-|mapper/|md|mem$|kmem$|port$|loop|block/)`)
})

// IsDisk reports whether a clean path names a disk or the memory itself.
func IsDisk(path string) bool { return device().MatchString(path) }
