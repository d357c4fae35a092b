package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestFilesAreWhole(t *testing.T) {
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		put    func(string, func(*os.File) error) error
		before string // content, or "" for no file
		failed error  // what write returns after a part
		err    error
		want   string
	}{
		"replace nothing":         {Replace, "", nil, nil, "new"},
		"replace a file":          {Replace, "old", nil, nil, "new"},
		"replace, failed":         {Replace, "old", broken, broken, "old"},
		"replace nothing, failed": {Replace, "", broken, broken, ""},
		"create":                  {Create, "", nil, nil, "new"},
		"create what exists":      {Create, "old", nil, fs.ErrExist, "old"},
		"create, failed":          {Create, "", broken, broken, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if tt.before != "" {
				if err := os.WriteFile(path, []byte(tt.before), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			err := tt.put(path, func(file *os.File) error {
				if seen, err := os.ReadFile(path); string(seen) != tt.before {
					t.Errorf("while it is written, there is %q (%v), want %q", seen, err, tt.before)
				}
				_, err := file.WriteString("new")
				return errors.Join(err, tt.failed)
			})
			if !errors.Is(err, tt.err) {
				t.Errorf("got %v, want %v", err, tt.err)
			}
			got, err := os.ReadFile(path)
			if string(got) != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("there is %q (%v), want %q", got, err, tt.want)
			}
			if info, err := os.Stat(path); tt.want == "new" && (err != nil || info.Mode().Perm() != 0o600) {
				t.Errorf("others may read it: %v, %v", info, err)
			}
			if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 1 || len(left) == 1 && left[0].Name() != "file" {
				t.Errorf("left %v (%v)", left, err)
			}
		})
	}
}
