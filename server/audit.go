package main

import (
	"io"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/audit"
)

// auditOutput is the value of audit-log for standard output.
const auditOutput = "-"

// checkAudit checks the settings of the audit log.
func (c *config) checkAudit(wrong func(format string, args ...any)) {
	if c.AuditRequired && c.AuditLog == "" {
		wrong("audit-required: requires audit-log: without it, there is no log to write to")
	}
	if c.AuditLogMaxSize < 1<<20 {
		wrong("audit-log-max-size: %s must be at least 1Mi", c.AuditLogMaxSize.String())
	}
	if c.AuditLogMaxFiles < 1 {
		wrong("audit-log-max-files: %d must be at least 1", c.AuditLogMaxFiles)
	}
}

// openAudit opens the audit log; it is nil if none is kept.
func (c *config) openAudit(stdout io.Writer) (*audit.Log, error) {
	if c.AuditLog == "" {
		return nil, nil
	}
	options := audit.Options{
		File: c.AuditLog, MaxBytes: int64(c.AuditLogMaxSize), MaxFiles: c.AuditLogMaxFiles,
		Required: c.AuditRequired, Server: c.serverName(), Version: version, Now: time.Now,
	}
	if c.AuditLog == auditOutput {
		options.File, options.Output = "", stdout
	}
	return audit.Open(options)
}
