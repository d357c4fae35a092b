package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/scheduler/terraform-provider-scheduler/internal/ca"
	"github.com/scheduler/terraform-provider-scheduler/internal/wholefile"
)

// Permissions of what everybody may read, such as the certificates, and of what only the server may
// read.
const (
	readable          fs.FileMode = 0o644
	private           fs.FileMode = 0o600
	readableDirectory fs.FileMode = 0o755
	privateDirectory  fs.FileMode = 0o700
)

// owner is the user to whom new files belong. The zero value is the user of this process.
type owner struct {
	set      bool
	uid, gid int
}

// findOwner finds a user by name.
func findOwner(name string) (owner, error) {
	if name == "" {
		return owner{}, nil
	}
	found, err := user.Lookup(name)
	if _, unknown := errors.AsType[user.UnknownUserError](err); unknown {
		return owner{}, fmt.Errorf("user: there is no user %q", name)
	}
	if err != nil {
		return owner{}, fmt.Errorf("user %q: %w", name, err)
	}
	uid, err := strconv.Atoi(found.Uid)
	if err != nil {
		return owner{}, fmt.Errorf("user %q: %w", name, err)
	}
	gid, err := strconv.Atoi(found.Gid)
	if err != nil {
		return owner{}, fmt.Errorf("user %q: %w", name, err)
	}
	return owner{set: true, uid: uid, gid: gid}, nil
}

// take gives a file to the owner.
func (o owner) take(path string) error {
	if !o.set {
		return nil
	}
	return os.Lchown(path, o.uid, o.gid)
}

// takeAll gives a directory and everything in it to the owner.
func (o owner) takeAll(dir string) error {
	if !o.set {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return o.take(path)
	})
}

// newFiles are the files that a command has made, so that it can remove them when it fails.
type newFiles struct {
	owner owner
	// paths are in the order in which they were made. Directories are removed with what is in them.
	paths []string
}

// directory makes a directory if there is none.
func (n *newFiles) directory(dir string, mode fs.FileMode) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	n.paths = append(n.paths, dir)
	return n.owner.take(dir)
}

// write writes a file as a whole, so that nobody reads a part of it, and replaces one of that name.
func (n *newFiles) write(path string, data []byte, mode fs.FileMode) error {
	err := wholefile.Replace(path, func(file *os.File) error {
		_, err := file.Write(data)
		return errors.Join(err, file.Chmod(mode), n.owner.take(file.Name()))
	})
	if err != nil {
		return err
	}
	n.paths = append(n.paths, path)
	return nil
}

// writePair writes a certificate and its key, the key first: a server that reloads both when the
// certificate changes finds its key.
func (n *newFiles) writePair(certFile, keyFile string, certificate *x509.Certificate, key any) error {
	encoded, err := ca.EncodeKey(key)
	if err != nil {
		return err
	}
	if err := n.write(keyFile, encoded, private); err != nil {
		return err
	}
	return n.write(certFile, ca.EncodeCertificate(certificate), readable)
}

// remove removes what was made.
func (n *newFiles) remove() {
	for _, path := range n.paths {
		_ = os.RemoveAll(path) // the error that led here is reported
	}
}
