package httpapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/audit"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth/jwt"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/gitops"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/lastseen"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile/previewcommit"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
	clusterhealth "github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// Store is the part of *store.Store that the API needs.
type Store interface {
	auth.TokenStore
	Info() api.StoreInfo
	// Age returns how long ago the store was last known to have nothing newer than a revision of
	// the fleet.
	Age(revision int64) time.Duration
	// Backup writes an archive of everything stored, and of the history if there is one.
	Backup(ctx context.Context, w io.Writer, history store.History) error
	// FinishUpgrade switches the store to the newest format; *store.OlderServerError if a server is
	// running that cannot read it.
	FinishUpgrade(ctx context.Context) error
	// Members are the embedded stores that form a cluster with this one.
	Members() []api.StoreMember
	AddMember(ctx context.Context, name, address string) (api.StoreMember, error)
	RemoveMember(ctx context.Context, name string) error
}

// Codec is the part of *store.Codec that the API needs.
type Codec interface {
	EncodeSpec(object api.Object) ([]byte, error)
	EncodeStatus(object api.Object) ([]byte, error)
	DecodeSpec(kind api.Kind, value []byte) (api.Object, error)
	DecodeStatus(object api.Object, value []byte) error
	// Seal and Unseal authenticate messages between servers.
	Seal(key api.Key, field, text string) string
	Unseal(key api.Key, field, sealed string) (string, error)
}

// Decisions is the part of the reconciler that the API needs.
type Decisions interface {
	// Settle waits until all decisions that follow from a revision are durable and in the fleet.
	Settle(ctx context.Context, revision int64) error
	// Explain returns the explanation of a placement or workload.
	Explain(key api.Key) (*api.Explanation, error)
	// ExplainPast explains it as it was in the fleet of an earlier revision, at a time if there is one.
	ExplainPast(ctx context.Context, past *fleet.Snapshot, key api.Key, at time.Time) (*api.Explanation, error)
	// Observe returns a copy of an object whose status is completed by data that is not stored, or
	// the object itself if there is none.
	Observe(object api.Object) api.Object
	// NextUnstored waits until Observe would return something else for objects although nothing was
	// written, and returns their keys.
	NextUnstored(ctx context.Context) ([]api.Key, error)
	// Previewed decisions are promises.
	previewcommit.Decisions
	// ObservePolicy returns a copy of a policy with its current bindings as status.
	ObservePolicy(policy *api.PropagationPolicy) *api.PropagationPolicy
	// ReportHealth records the health of a workload on one of its clusters, and returns when that
	// is durable. It returns api.FieldErrors if the workload does not run there.
	ReportHealth(ctx context.Context, workload api.Key, report api.HealthReport) (revision int64, err error)
	// Simulate decides without changing anything; api.FieldErrors for invalid objects.
	Simulate(ctx context.Context, request api.Simulation) (*api.SimulationResult, error)
}

// Signals is the part of the signal runner that the API needs.
type Signals interface {
	// Settle waits until everything that changed up to a revision has been read or probed once, and
	// returns the revision of the resulting status writes.
	Settle(ctx context.Context, revision int64) (int64, error)
	// Heartbeat accepts the report of a cluster's agent. The revision is 0 if it contains no
	// changes, so that nothing was written.
	Heartbeat(ctx context.Context, cluster string, report api.Heartbeat) (revision int64, err error)
	// Report records amounts that somebody other than its agent reports about a cluster.
	Report(ctx context.Context, cluster string, amounts clusterhealth.Amounts) (revision int64, err error)
	// ReportCloud accepts the report of a collector about a cloud; changed is false if it contained
	// no changes.
	ReportCloud(ctx context.Context, cloud string, report api.CloudReport) (revision int64, changed bool, err error)
	// LiveOpenStack queries the OpenStack of a cloud.
	LiveOpenStack(ctx context.Context, cloud string, options api.LiveOptions) (*api.LiveOpenStack, error)
}

// Options configures a server. Store, Fleet, Codec, Decisions and Signals are
// required.
type Options struct {
	Store     Store
	Fleet     *fleet.Fleet
	Codec     Codec
	Decisions Decisions
	Signals   Signals
	// Beats are the times of the last heartbeats of clusters. If nil, the stored times are used.
	Beats *lastseen.Times
	// Audit is the audit log. If nil, none is kept.
	Audit *audit.Log
	// Network is the policy for outbound connections. Addresses that it rejects as written are not
	// stored.
	Network *addresspolicy.Policy
	// History is what was decided. If nil, it is not kept.
	History History
	// Spot splits workloads between on-demand and spot nodes. If nil, nothing is split, and
	// requests about it get 503.
	Spot Spot

	// Listener is where Run serves. Run closes it.
	Listener net.Listener
	// TLS is nil for plain HTTP.
	TLS *tls.Config
	// Authenticate requires a token for every request except health checks, even while there are no
	// tokens. Without it, everybody is an administrator until the first token is created; from then
	// on tokens are required.
	Authenticate bool
	// Issuers verifies JSON Web Tokens of trusted issuers. If set, every request needs a
	// token. Nil = only tokens of the server are accepted.
	Issuers *jwt.Verifier
	// Logins are the issuers with which people can log in.
	Logins []api.LoginOption

	// UI are the files of the page for people. Without an index.html, the page says how to build it.
	UI fs.FS

	// Version is the version in /v1/server.
	Version string
	// Name is the display name of this server among several.
	Name string
	// Leader determines which of several servers makes the decisions. If nil, there is no other
	// server.
	Leader Leader
	// Checks returns additional readiness checks. It may be nil.
	Checks func() []Check
	// Faults records panics, and says which objects they were about and which components they
	// ended. It may be nil.
	Faults *recovery.Recorder
	// Gatherer gathers the metrics for /metrics. It should include the Collectors of this server.
	// Default: prometheus.DefaultGatherer.
	Gatherer prometheus.Gatherer

	// MaxBodyBytes limits the body of a request. Zero means 1 MiB.
	MaxBodyBytes int64
	// MaxSimulationBytes limits the body of a simulation, which may contain a whole fleet. Zero
	// means 64 MiB.
	MaxSimulationBytes int64
	// MaxPreviews limits the number of previews: each plan of a placement with a preview creates
	// one, and everybody who may read may plan. Zero means 50,000.
	MaxPreviews int
	// Connections limits the open connections. Default: a limit of this server's own.
	Connections *serve.Limit
	// LoginFailuresPerSecond and LoginFailureBurst limit failed logins of one client address. Zero
	// means 1 per second after a burst of 20.
	LoginFailuresPerSecond float64
	LoginFailureBurst      int
	// HeaderTimeout limits reading the header of a request, and the TLS handshake. Zero means 5
	// seconds.
	HeaderTimeout time.Duration
	// BodyTimeout limits reading a body. Zero means 30 seconds.
	BodyTimeout time.Duration
	// WatchHeartbeat is the interval of bookmarks on a quiet watch. Zero means 15 seconds.
	WatchHeartbeat time.Duration
	// WatchWriteTimeout is how long the reader of a watch may take for one part of it. Zero means
	// 10 seconds.
	WatchWriteTimeout time.Duration
	// DrainTime is how long requests may continue when Run ends. Zero means 10 seconds.
	DrainTime time.Duration

	// Tracer makes traces of requests. Nil = there are none.
	Tracer *tracing.Tracer
	// Logger receives a line for each request, and errors. If nil, log messages are discarded.
	Logger *slog.Logger
	// Now is the clock of timestamps and expiries. Default: time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, 1<<20)
	o.MaxSimulationBytes = cmp.Or(o.MaxSimulationBytes, 64<<20)
	o.MaxPreviews = cmp.Or(o.MaxPreviews, 50_000)
	o.LoginFailuresPerSecond = cmp.Or(o.LoginFailuresPerSecond, 1)
	o.LoginFailureBurst = cmp.Or(o.LoginFailureBurst, 20)
	o.HeaderTimeout = cmp.Or(o.HeaderTimeout, 5*time.Second)
	o.BodyTimeout = cmp.Or(o.BodyTimeout, 30*time.Second)
	o.WatchHeartbeat = cmp.Or(o.WatchHeartbeat, 15*time.Second)
	o.WatchWriteTimeout = cmp.Or(o.WatchWriteTimeout, 10*time.Second)
	o.DrainTime = cmp.Or(o.DrainTime, 10*time.Second)
	if o.Connections == nil {
		o.Connections = serve.NewLimit(serve.LimitOptions{})
	}
	if o.Beats == nil {
		o.Beats = &lastseen.Times{}
	}
	if o.Checks == nil {
		o.Checks = func() []Check { return nil }
	}
	if o.Gatherer == nil {
		o.Gatherer = prometheus.DefaultGatherer
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Spot == nil {
		o.Spot = noSpot{}
	}
	return o
}

// Server is the HTTP server of the API.
type Server struct {
	options  Options
	logger   *slog.Logger
	api      *operation.API
	handler  http.Handler
	metrics  *httpMetrics
	logins   *auth.LoginLimit
	sessions *auth.Sessions
	waits    *decisionWaiter
	watches  *watches
	previews *previews
	listed   *listedFleets
	reports  *reports
	status   *status
	relay    *relay
	audit    *auditor
	pauses   *serve.Pauses

	stop      context.CancelFunc // wakes everybody who waits
	listening chan struct{}      // closed when Run serves
}

// New returns a server; Run serves.
func New(options Options) (*Server, error) {
	o := options.withDefaults()
	if o.Store == nil || o.Fleet == nil || o.Codec == nil || o.Decisions == nil || o.Signals == nil {
		return nil, errors.New("httpapi: Store, Fleet, Codec, Decisions and Signals are required")
	}
	pauses := &serve.Pauses{}
	o.Store = wantedWrites{o.Store, pauses}
	s := &Server{
		options: o, pauses: pauses, logger: o.Logger, metrics: newHTTPMetrics(),
		logins:    auth.NewLoginLimit(o.LoginFailuresPerSecond, o.LoginFailureBurst),
		sessions:  auth.NewSessions(o.Fleet, o.Authenticate || o.Issuers != nil, o.Logger, o.Now),
		audit:     &auditor{o.Audit, o.Codec, o.Logger},
		listening: make(chan struct{}),
	}
	var stopping context.Context
	stopping, s.stop = context.WithCancel(context.Background())
	s.waits = &decisionWaiter{store: o.Store, fleet: o.Fleet, decisions: o.Decisions, signals: o.Signals, tracer: o.Tracer, logger: o.Logger, stopping: stopping}
	s.waits.leader = newLeaderClient(o, s.waits, s.sessions)
	page, err := newUI(o.UI, o.Logins)
	if err != nil {
		return nil, err
	}
	answers, err := serve.Compress(s.routes(page), watchPath, backupPath)
	if err != nil {
		return nil, err
	}
	guarded := s.survive(limitWork(sameSite(s.authenticate(s.trace(s.waits.leader.keepCredentials(s.waits.leader.current(s.reports.direct(answers))))))))
	s.handler = serve.LimitTime(s.observe(gitops.WithMessages(guarded)), o.BodyTimeout, operation.MaxWait+simulationTime)
	return s, nil
}

// sameSite rejects requests that a page of another site makes a browser send: a server on loopback
// has no other protection against them.
func sameSite(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problem.Write(w, problem.New(api.ProblemCrossOrigin, "pages of other sites must not send writes to this server"))
	}))
	return protection.Handler(next)
}

// Listening returns a channel that is closed when Run serves.
func (s *Server) Listening() <-chan struct{} { return s.listening }

// Run serves until ctx is done. Then it reports itself as not ready, ends all waits, and gives
// running requests DrainTime to finish. A server runs once.
func (s *Server) Run(ctx context.Context) error {
	var background sync.WaitGroup
	defer background.Wait()
	for name, run := range map[string]func(context.Context){
		"watches": func(ctx context.Context) { s.watches.events.follow(ctx, s.options.Fleet) },
		"watches of decisions": func(ctx context.Context) {
			s.watches.events.followUnstored(ctx, s.options.Fleet, s.options.Decisions.NextUnstored)
		},
		"watches of faults": func(ctx context.Context) {
			s.watches.events.followUnstored(ctx, s.options.Fleet, s.watches.view.nextFaulted)
		},
		"heartbeats": s.relay.run, "previews": s.previews.sweep, "tokens": s.sessions.Watch,
		"pauses": s.pauses.Run, "memory of watches": s.watches.events.encoded.giveBack,
		"snapshots of lists": func(ctx context.Context) { s.listed.sweep(ctx, s.options.Fleet.Snapshot) },
	} {
		background.Go(func() {
			_ = s.options.Faults.Component(name).Supervise(s.waits.stopping, func(ctx context.Context) error { run(ctx); return nil }) // returns no error of its own
		})
	}
	defer s.stop() // before background.Wait
	close(s.listening)
	return serve.Run(ctx, serve.Options{
		Name: "api", Listener: s.options.Listener, Handler: s.handler, TLS: s.options.TLS, Connections: s.options.Connections,
		HeaderTimeout: s.options.HeaderTimeout, MaxHeaderBytes: 64 << 10,
		DrainTime: s.options.DrainTime, Stopping: s.stop, Logger: s.logger,
	})
}
