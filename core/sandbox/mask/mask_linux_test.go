package mask

import (
	"fmt"
	"testing"
)

func TestAliasesOfAPath(t *testing.T) {
	mounts := parseMounts(`21 1 8:1 / / rw - ext4 /dev/sda1 rw
22 21 8:1 /home/u/vault /srv/with\040space rw - ext4 /dev/sda1 rw
23 21 8:1 /home/u/vault/.p/trash /mnt/t rw - ext4 /dev/sda1 rw
24 21 8:2 / /data rw - ext4 /dev/sda2 rw
25 21 8:1 /home/u/va /mnt/near rw - ext4 /dev/sda1 rw
broken`)
	if len(mounts) != 5 {
		t.Fatalf("%v", mounts)
	}
	if got := fmt.Sprint(aliases("/home/u/vault/.p", mounts[0], mounts)); got != "[/srv/with space/.p /mnt/t]" {
		t.Error(got)
	}
	if got := fmt.Sprint(aliases("/srv/with space/.p/lock", mounts[1], mounts)); got != "[/home/u/vault/.p/lock]" {
		t.Error(got)
	}
}
