// Chserver serves one data directory of ClickHouse, with the engine in libchdb.so, over
// ClickHouse's protocols. It is for tests: no users, no TLS, no cluster. It prints a line when
// it is ready, and ends on SIGTERM, or immediately when its standard input ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "chserver:", err)
		os.Exit(1)
	}
}

func run() error {
	libPath := flag.String("lib", "", "`path` of libchdb.so")
	dir := flag.String("dir", "", "data `directory`")
	httpAddr := flag.String("http", "", "`address` of the HTTP protocol")
	nativeAddr := flag.String("native", "", "`address` of the native protocol")
	config := flag.String("config", "", "`file` with settings of the server, in XML")
	flag.Parse()
	lib, err := openLibrary(*libPath)
	if err != nil {
		return err
	}
	args := []string{"--path=" + *dir}
	if *config != "" {
		args = append(args, "--config-file="+*config)
	}
	first, err := lib.open(args...) // the engine runs as long as one session is open
	if err != nil {
		return err
	}
	defer first.close()
	e, err := newRunner(lib, args)
	if err != nil {
		return err
	}
	defer e.close()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // the end of the input counts
		os.Exit(1)                    // the process that started this one has gone
	}()
	ln, err := net.Listen("tcp", *httpAddr)
	if err != nil {
		return err
	}
	nativeLn, err := net.Listen("tcp", *nativeAddr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: &httpHandler{runner: e}}
	go server.Serve(ln) //nolint:errcheck // ends with Close
	native := &nativeServer{runner: e, conns: map[net.Conn]struct{}{}}
	go native.serve(nativeLn)
	_, err = fmt.Println("ready")
	<-ctx.Done()
	nativeLn.Close()
	native.stop()
	return errors.Join(err, server.Shutdown(context.Background()))
}
