package main

import (
	"log/slog"

	"github.com/scheduler/terraform-provider-scheduler/internal/fdlimit"
	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
)

// connectionLimit returns the limit on client connections: the setting, capped by the file
// descriptors of the process.
func (c *config) connectionLimit(budget fdlimit.Budget, logger *slog.Logger) *serve.Limit {
	total := min(c.MaxConnections, budget.Inbound)
	if total < c.MaxConnections {
		logger.Warn("fewer connections are accepted than --max-connections says: the limit of open files allows no more",
			"connections", total, "max_connections", c.MaxConnections, "open_files", budget.Limit)
	}
	return serve.NewLimit(serve.LimitOptions{Total: total, PerClient: min(c.MaxConnectionsPerIP, total), Logger: logger})
}
