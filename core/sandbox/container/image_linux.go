package container

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"gatehouse/core/sandbox"
	"gatehouse/core/sandbox/container/inside"
)

// imageTime bounds the making of the image and the first container.
const imageTime = time.Minute

// imageName is the name of our own image; its tag is the hash of its content.
const imageName = "localhost/gatehouse-sandbox"

// findImage makes sure that the engine has the image, and makes our own one.
func (b *box) findImage(ctx context.Context) error {
	if b.o.Image != "" {
		b.image = b.o.Image
		if _, err := b.call(ctx, nil, "image", "inspect", b.image); err != nil {
			return fmt.Errorf("the engine does not have the image %s (no image is pulled: pull or load it first): %w", b.image, err)
		}
		return nil
	}
	content, err := layout(b.engine.uid, b.engine.gid)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	b.image = imageName + ":" + hex.EncodeToString(sum[:8])
	if _, err := b.call(ctx, nil, "image", "inspect", b.image); err == nil {
		return nil
	}
	_, err = b.call(ctx, content, "import", "--change=LABEL gatehouse.sandbox=1", "-", b.image)
	return err
}

// layout returns the content of our own image, a tar archive: the directories and
// links in which the host's programs are mounted, and a few files of /etc. It
// is the same for the same host.
func layout(uid, gid int) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	put := func(h tar.Header, text string) error {
		h.Name, h.Size = strings.TrimPrefix(h.Name, "/"), int64(len(text))
		h.Format = tar.FormatUSTAR
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := w.Write([]byte(text))
		return err
	}
	for _, h := range skeleton() {
		if err := put(h, ""); err != nil {
			return nil, fmt.Errorf("image: %w", err)
		}
	}
	accounts := sandbox.Accounts(uid, gid)
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		if err := put(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}, accounts[name]); err != nil {
			return nil, fmt.Errorf("image: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	return out.Bytes(), nil
}

// skeleton returns the directories, links and empty files of our own image.
func skeleton() (list []tar.Header) {
	dir := func(name string, mode int64) {
		list = append(list, tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode})
	}
	for _, name := range []string{"/proc", "/dev", "/sys", "/etc", "/run", "/var"} {
		dir(name, 0o755)
	}
	dir("/tmp", 0o1777)
	for _, p := range sandbox.SystemFolders() {
		if to, err := os.Readlink(p); err == nil {
			list = append(list, tar.Header{Typeflag: tar.TypeSymlink, Name: p, Linkname: to, Mode: 0o777})
		} else if st, err := os.Stat(p); err == nil && st.IsDir() {
			dir(p, 0o755)
		}
	}
	for _, name := range []string{inside.StagePath, inside.LinkPath, "/etc/hostname", "/etc/resolv.conf"} {
		list = append(list, tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(fs.FileMode(0o644))})
	}
	return list
}
