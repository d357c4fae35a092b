package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// process is a part of the fleet that can be killed and restarted.
type process struct {
	name    string
	ready   string // how the line starts that says that it is ready
	command []string
	logFile string

	cmd *exec.Cmd
}

// start starts the process and waits until it is ready.
func (p *process) start(ctx context.Context) error {
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), p.command[0], p.command[1:]...) //nolint:gosec // a part of the demo
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}                                 // interrupting the demo does not reach it
	p.cmd.Stderr = log
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, p.ready) {
		_ = p.stop(syscall.SIGKILL)
		said, _ := os.ReadFile(p.logFile)
		return fmt.Errorf("%s did not start: %w\n%s", p.name, errors.Join(err, ctx.Err()), said)
	}
	return nil
}

// stop stops the process with a signal: SIGKILL acts like a power cut.
func (p *process) stop(by syscall.Signal) error {
	err := p.cmd.Process.Signal(by)
	_ = p.cmd.Wait() // the exit status is expected
	return err
}
