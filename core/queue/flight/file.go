package flight

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// The file: a header, then as many slots as it says, each with a checksum in front. Numbers are
// little-endian.
//
//	header  crc 4 | version 4 | slots 4 | boot 32 | owner 32 | device 8 | inode 8 | zeros
//	slot    crc 4 | phase 1 | length of id 1 | zeros 2 | number 8 | seq 8 | epoch 8 | attempt 4 | id 92
const (
	version    = 1
	headerSize = 4096
	slotSize   = 128
	idAt       = 36
	maxID      = slotSize - idAt
	maxSlots   = 1 << 16 // that are read
)

func offset(slot int) int64 { return headerSize + int64(slot)*slotSize }

// header returns the header of this process's file, with a number of slots.
func (r *Recorder) header(f *os.File, slots uint32) ([]byte, error) {
	device, inode, err := fileID(f)
	if err != nil {
		return nil, err
	}
	b := make([]byte, headerSize)
	binary.LittleEndian.PutUint32(b[4:], version)
	binary.LittleEndian.PutUint32(b[8:], slots)
	boot, owner := sha256.Sum256([]byte(r.boot)), sha256.Sum256([]byte(r.owner))
	copy(b[12:], boot[:])
	copy(b[44:], owner[:])
	binary.LittleEndian.PutUint64(b[76:], device)
	binary.LittleEndian.PutUint64(b[84:], inode)
	seal(b)
	return b, nil
}

// seal sets the checksum.
func seal(b []byte) { binary.LittleEndian.PutUint32(b, crc32.ChecksumIEEE(b[4:])) }

func sealed(b []byte) bool { return binary.LittleEndian.Uint32(b) == crc32.ChecksumIEEE(b[4:]) }

// format writes an empty file with this process's header.
func (r *Recorder) format(f *os.File) error {
	head, err := r.header(f, Slots)
	if err != nil {
		return err
	}
	if err := f.Truncate(headerSize + Slots*slotSize); err != nil {
		return err
	}
	if _, err := f.WriteAt(make([]byte, Slots*slotSize), headerSize); err != nil { // its pages exist from now on
		return err
	}
	_, err = f.WriteAt(head, 0)
	return err
}

// read returns what the file states. A damaged slot is left out, so that its send counts
// as unrecorded.
func (r *Recorder) read(f *os.File) (map[Mark]Trace, error) {
	all, err := io.ReadAll(io.NewSectionReader(f, 0, headerSize+maxSlots*slotSize))
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if len(all) < headerSize {
		return nil, fmt.Errorf("it has %d bytes", len(all))
	}
	head := all[:headerSize]
	slots := binary.LittleEndian.Uint32(head[8:])
	ours, err := r.header(f, slots)
	switch {
	case err != nil:
		return nil, err
	case !sealed(head):
		return nil, errors.New("its header is damaged")
	case string(head[4:8]) != string(ours[4:8]):
		return nil, errors.New("it has another version")
	case string(head[12:44]) != string(ours[12:44]):
		return nil, errors.New("the machine was restarted since")
	case string(head[44:76]) != string(ours[44:76]):
		return nil, errors.New("it belongs to another database")
	case string(head) != string(ours):
		return nil, errors.New("it is a copy")
	case int64(len(all)) != offset(int(slots)):
		return nil, fmt.Errorf("it has %d bytes for %d slots", len(all), slots)
	}
	found, latest := map[Mark]Trace{}, map[Mark]uint64{}
	for i := range int(slots) {
		b := all[offset(i):][:slotSize]
		m, number, t := decode(b)
		if t.Phase == Unrecorded || number < latest[m] {
			continue
		}
		found[m], latest[m] = t, number
	}
	return found, nil
}

// encode returns the slot of s in a phase.
func (s *Send) encode(p Phase, id string) []byte {
	b := make([]byte, slotSize)
	b[4], b[5] = byte(p), byte(len(id))
	binary.LittleEndian.PutUint64(b[8:], s.number)
	binary.LittleEndian.PutUint64(b[16:], uint64(s.mark.Seq))
	binary.LittleEndian.PutUint64(b[24:], uint64(s.mark.Epoch))
	binary.LittleEndian.PutUint32(b[32:], uint32(s.mark.Attempt))
	copy(b[idAt:], id)
	seal(b)
	return b
}

// decode reads a slot: Unrecorded when it is empty or damaged.
func decode(b []byte) (Mark, uint64, Trace) {
	p := Phase(b[4])
	if !sealed(b) || p < Marked || p > Answered || int(b[5]) > maxID {
		return Mark{}, 0, Trace{}
	}
	m := Mark{Seq: int64(binary.LittleEndian.Uint64(b[16:])), Epoch: int64(binary.LittleEndian.Uint64(b[24:])), Attempt: int(binary.LittleEndian.Uint32(b[32:]))}
	return m, binary.LittleEndian.Uint64(b[8:]), Trace{p, string(b[idAt:][:b[5]])}
}
