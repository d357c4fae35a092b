package main

import (
	"log/slog"

	"github.com/scheduler/terraform-provider-scheduler/internal/descriptor"
	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
)

// connectionLimit is the limit on clients' connections: what the flags say, as far
// as the process may open that many.
func (c *config) connectionLimit(budget descriptor.Budget, logger *slog.Logger) *serve.Limit {
	total := min(c.MaxConnections, budget.Inbound)
	if total < c.MaxConnections {
		logger.Warn("fewer connections are accepted than --max-connections says: the limit of open files allows no more",
			"connections", total, "max_connections", c.MaxConnections, "open_files", budget.Limit)
	}
	return serve.NewLimit(serve.LimitOptions{Total: total, PerClient: min(c.MaxConnectionsPerIP, total), Logger: logger})
}
