package doctor

import "syscall"

// remote are the file systems, by the numbers of statfs(2), on which locks or
// durable writes are not what a database needs.
var remote = map[int64]string{
	0x6969:     "a network folder (NFS)",
	0xFF534D42: "a network folder (CIFS)",
	0xFE534D42: "a network folder (SMB)",
	0x517B:     "a network folder (SMB)",
	0x01021997: "a shared folder of a virtual machine (9P)",
	0x65735546: "a FUSE file system",
	0x00C36400: "a network folder (Ceph)",
	0x5346414F: "a network folder (AFS)",
	0x01021994: "a file system in memory (tmpfs), which a restart of the machine empties",
}

// Filesystem reports what kind of file system dir is on when that is worth
// a warning, and how many bytes this user may still write there.
func Filesystem(dir string) (worry string, free uint64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "", 0, false
	}
	return remote[int64(s.Type)&0xFFFFFFFF], s.Bavail * uint64(s.Bsize), true
}
