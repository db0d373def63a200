package vfstest_test

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// Every file system behaves alike.
func TestConformance(t *testing.T) {
	systems := map[string]func(t *testing.T) (vfs.FS, string){
		"OS":  func(t *testing.T) (vfs.FS, string) { return vfs.OS(), filepath.ToSlash(t.TempDir()) },
		"Mem": func(t *testing.T) (vfs.FS, string) { return newMem(t), "/d" },
		"Locked": func(t *testing.T) (vfs.FS, string) {
			m := newMem(t)
			lock, err := m.Lock("/d/LOCK")
			must(t, err)
			must(t, m.MkdirAll("/d/e"))
			return vfs.Locked(m, "/d", lock), "/d/e"
		},
		"Injector": func(t *testing.T) (vfs.FS, string) { return vfstest.Inject(newMem(t)), "/d" },
	}
	behaviors := map[string]func(t *testing.T, fsys vfs.FS, dir string){
		"create":    testCreate,
		"open":      testOpen,
		"read":      testRead,
		"write":     testWrite,
		"truncate":  testTruncate,
		"rename":    testRename,
		"remove":    testRemove,
		"directory": testDirectory,
		"lock":      testLock,
		"in place":  testInPlace,
		"closed":    testClosed,
		"free":      testFree,
	}
	for system, start := range systems {
		for name, test := range behaviors {
			t.Run(system+"/"+name, func(t *testing.T) {
				fsys, dir := start(t)
				test(t, fsys, dir)
			})
		}
	}
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: error %v, want %v", what, got, want)
	}
}

func wantSomeErr(t *testing.T, what string, got error) {
	t.Helper()
	if got == nil {
		t.Errorf("%s: no error", what)
	}
}

func wantSize(t *testing.T, f vfs.File, want int64) {
	t.Helper()
	if size, err := f.Size(); size != want || err != nil {
		t.Errorf("Size() = %d, %v, want %d", size, err, want)
	}
}

func wantContent(t *testing.T, fsys vfs.FS, name, want string) {
	t.Helper()
	if got := read(t, fsys, name); got != want {
		t.Errorf("%s holds %q, want %q", name, got, want)
	}
}

func testCreate(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, dir+"/a", "hello")
	if f.Name() != dir+"/a" {
		t.Errorf("Name() = %q", f.Name())
	}
	buf := make([]byte, 5)
	if _, err := f.ReadAt(buf, 0); err != nil || string(buf) != "hello" {
		t.Errorf("a created file reads %q, %v", buf, err)
	}
	must(t, f.Close())
	_, err := fsys.Create(dir + "/a")
	wantErr(t, "create twice", err, fs.ErrExist)
	_, err = fsys.Create(dir + "/none/a")
	wantErr(t, "create without directory", err, fs.ErrNotExist)
	_, err = fsys.Create(dir + "/a/b")
	wantSomeErr(t, "create below a file", err)
	wantContent(t, fsys, dir+"/a", "hello")
}

func testOpen(t *testing.T, fsys vfs.FS, dir string) {
	for _, open := range []func(string) (vfs.File, error){fsys.Open, fsys.OpenWrite} {
		f, err := open(dir + "/none")
		wantErr(t, "open what is not there", err, fs.ErrNotExist)
		if f != nil {
			t.Errorf("a failed open returns the file %v", f)
		}
		var named *fs.PathError
		if !errors.As(err, &named) || named.Path != dir+"/none" {
			t.Errorf("error %v does not name the file", err)
		}
	}
	must(t, create(t, fsys, dir+"/a", "0123").Close())
	f, err := fsys.Open(dir + "/a")
	must(t, err)
	_, err = f.WriteAt([]byte("x"), 0)
	wantSomeErr(t, "write to a file opened for reading", err)
	wantSomeErr(t, "truncate a file opened for reading", f.Truncate(0))
	must(t, f.Close())
	f, err = fsys.OpenWrite(dir + "/a")
	must(t, err)
	write(t, f, "x", 1)
	must(t, f.Close())
	wantContent(t, fsys, dir+"/a", "0x23")
	_, err = fsys.OpenWrite(dir)
	wantSomeErr(t, "open a directory for writing", err)
}

func testRead(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, dir+"/a", "0123456789")
	defer f.Close()
	for _, c := range []struct {
		off  int64
		len  int
		want string
		err  error
	}{
		{0, 10, "0123456789", nil}, {3, 4, "3456", nil}, {8, 4, "89", io.EOF}, {10, 1, "", io.EOF}, {99, 1, "", io.EOF}, {10, 0, "", nil},
	} {
		buf := make([]byte, c.len)
		n, err := f.ReadAt(buf, c.off)
		if string(buf[:n]) != c.want || err != c.err { // readers compare with io.EOF itself
			t.Errorf("ReadAt(%d bytes, %d) = %q, %v, want %q, %v", c.len, c.off, buf[:n], err, c.want, c.err)
		}
	}
	_, err := f.ReadAt(make([]byte, 1), -1)
	wantSomeErr(t, "read at a negative offset", err)
}

func testWrite(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, dir+"/a", "abc")
	defer f.Close()
	write(t, f, "Z", 5)
	wantContent(t, fsys, dir+"/a", "abc\x00\x00Z")
	write(t, f, "--", 2)
	wantContent(t, fsys, dir+"/a", "ab--\x00Z")
	write(t, f, "", 99)
	wantSize(t, f, 6)
	_, err := f.WriteAt([]byte("x"), -1)
	wantSomeErr(t, "write at a negative offset", err)
	must(t, f.Sync())
	wantSize(t, f, 6)
}

func testTruncate(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, dir+"/a", "abcdef")
	defer f.Close()
	must(t, f.Truncate(2))
	wantSize(t, f, 2)
	must(t, f.Truncate(4))
	wantContent(t, fsys, dir+"/a", "ab\x00\x00")
	write(t, f, "!", 5)
	wantContent(t, fsys, dir+"/a", "ab\x00\x00\x00!")
	wantSomeErr(t, "negative size", f.Truncate(-1))
	must(t, f.Truncate(1<<30))
	wantSize(t, f, 1<<30)
}

func testRename(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, dir+"/a", "A")
	must(t, create(t, fsys, dir+"/b", "B").Close())
	must(t, f.Close())
	must(t, fsys.Rename(dir+"/a", dir+"/b"))
	wantContent(t, fsys, dir+"/b", "A")
	if got := names(t, fsys, dir); !slices.Equal(got, []string{"b"}) {
		t.Errorf("after a rename there are %q", got)
	}
	must(t, fsys.Rename(dir+"/b", dir+"/b"))
	wantErr(t, "rename what is not there", fsys.Rename(dir+"/a", dir+"/c"), fs.ErrNotExist)
	wantErr(t, "rename to a missing directory", fsys.Rename(dir+"/b", dir+"/none/b"), fs.ErrNotExist)
	must(t, fsys.MkdirAll(dir+"/d"))
	must(t, fsys.Rename(dir+"/b", dir+"/d/e"))
	wantContent(t, fsys, dir+"/d/e", "A")
	wantSomeErr(t, "rename onto a directory", fsys.Rename(dir+"/d/e", dir+"/d"))
	wantSomeErr(t, "rename a directory into itself", fsys.Rename(dir+"/d", dir+"/d/f"))
	must(t, fsys.Rename(dir+"/d", dir+"/g"))
	wantContent(t, fsys, dir+"/g/e", "A")
}

func testRemove(t *testing.T, fsys vfs.FS, dir string) {
	wantErr(t, "remove what is not there", fsys.Remove(dir+"/a"), fs.ErrNotExist)
	must(t, create(t, fsys, dir+"/a", "A").Close())
	must(t, fsys.Remove(dir+"/a"))
	_, err := fsys.Open(dir + "/a")
	wantErr(t, "open a removed file", err, fs.ErrNotExist)
	must(t, fsys.MkdirAll(dir+"/d"))
	must(t, create(t, fsys, dir+"/d/a", "A").Close())
	wantSomeErr(t, "remove a directory that is not empty", fsys.Remove(dir+"/d"))
	must(t, fsys.Remove(dir+"/d/a"))
	must(t, fsys.Remove(dir+"/d"))
}

func testDirectory(t *testing.T, fsys vfs.FS, dir string) {
	must(t, fsys.MkdirAll(dir+"/m/n"))
	must(t, fsys.MkdirAll(dir+"/m/n"))
	must(t, create(t, fsys, dir+"/m/z", "12").Close())
	must(t, create(t, fsys, dir+"/m/a", "").Close())
	got, err := fsys.ReadDir(dir + "/m")
	want := []vfs.Entry{{Name: "a"}, {Name: "n", IsDir: true}, {Name: "z", Size: 2}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("ReadDir = %v, %v, want %v", got, err, want)
	}
	wantSomeErr(t, "a file where a directory should be", fsys.MkdirAll(dir+"/m/a"))
	wantSomeErr(t, "a file above a directory", fsys.MkdirAll(dir+"/m/a/b"))
	_, err = fsys.ReadDir(dir + "/none")
	wantErr(t, "list what is not there", err, fs.ErrNotExist)
	_, err = fsys.ReadDir(dir + "/m/a")
	wantSomeErr(t, "list a file", err)
	must(t, fsys.SyncDir(dir+"/m"))
	wantErr(t, "sync what is not there", fsys.SyncDir(dir+"/none"), fs.ErrNotExist)
}

func testLock(t *testing.T, fsys vfs.FS, dir string) {
	lock, err := fsys.Lock(dir + "/lock")
	must(t, err)
	again, err := fsys.Lock(dir + "/lock")
	wantErr(t, "lock twice", err, vfs.ErrLocked)
	if again != nil {
		t.Errorf("a refused Lock returns %v", again)
	}
	other, err := fsys.Lock(dir + "/other")
	must(t, err)
	must(t, other.Close())
	must(t, lock.Close())
	if got := names(t, fsys, dir); !slices.Equal(got, []string{"lock", "other"}) {
		t.Errorf("after the release there are %q", got)
	}
	lock, err = fsys.Lock(dir + "/lock")
	must(t, err)
	must(t, lock.Close())
	_, err = fsys.Lock(dir + "/none/lock")
	wantErr(t, "lock without directory", err, fs.ErrNotExist)
	_, err = fsys.Lock(dir)
	wantSomeErr(t, "lock a directory", err)
}

func testInPlace(t *testing.T, fsys vfs.FS, dir string) {
	wantErr(t, "create a directory below what is not there", fsys.Mkdir(dir+"/none/d"), fs.ErrNotExist)
	must(t, fsys.Mkdir(dir+"/d"))
	must(t, fsys.Mkdir(dir+"/d"))
	lock, err := fsys.Lock(dir + "/d/lock")
	must(t, err)
	f := create(t, fsys, dir+"/d/a", "A")
	must(t, errors.Join(lock.InPlace(), f.InPlace()))
	must(t, fsys.Rename(dir+"/d", dir+"/moved"))
	wantErr(t, "a lock in a moved directory", lock.InPlace(), vfs.ErrMoved)
	wantErr(t, "a file in a moved directory", f.InPlace(), vfs.ErrMoved)
	must(t, fsys.Mkdir(dir+"/d"))
	other, err := fsys.Lock(dir + "/d/lock")
	must(t, err)
	wantErr(t, "a lock in a replaced directory", lock.InPlace(), vfs.ErrMoved)
	must(t, other.InPlace())
	must(t, other.Close())
	must(t, fsys.Rename(dir+"/d", dir+"/second"))
	must(t, fsys.Rename(dir+"/moved", dir+"/d"))
	must(t, errors.Join(lock.InPlace(), f.InPlace()))
	must(t, fsys.Remove(dir+"/d/a"))
	wantErr(t, "a removed file", f.InPlace(), vfs.ErrMoved)
	must(t, errors.Join(lock.Close(), f.Close()))
}

func testClosed(t *testing.T, fsys vfs.FS, dir string) {
	f := create(t, fsys, dir+"/a", "A")
	must(t, f.Close())
	_, err := f.ReadAt(make([]byte, 1), 0)
	wantErr(t, "read", err, fs.ErrClosed)
	_, err = f.WriteAt(make([]byte, 1), 0)
	wantErr(t, "write", err, fs.ErrClosed)
	_, err = f.Size()
	wantErr(t, "size", err, fs.ErrClosed)
	wantErr(t, "truncate", f.Truncate(0), fs.ErrClosed)
	wantErr(t, "sync", f.Sync(), fs.ErrClosed)
	wantErr(t, "close", f.Close(), fs.ErrClosed)
	lock, err := fsys.Lock(dir + "/lock")
	must(t, err)
	must(t, lock.Close())
	wantErr(t, "unlock", lock.Close(), fs.ErrClosed)
}

func testFree(t *testing.T, fsys vfs.FS, dir string) {
	free, err := fsys.Free(dir)
	if err != nil || free <= 0 {
		t.Errorf("Free = %d, %v", free, err)
	}
	_, err = fsys.Free(dir + "/none")
	wantErr(t, "free space of what is not there", err, fs.ErrNotExist)
}
