package httpapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth/jwt"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/heartbeat"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/netpolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile/promise"
	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
	clusterhealth "github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
)

// Store is what the API needs of the store; *store.Store is one.
type Store interface {
	auth.TokenStore
	Info() api.StoreInfo
	// Age is how long ago the store was last known to hold nothing newer than a
	// revision of the fleet.
	Age(revision int64) time.Duration
	// Backup writes an archive of everything stored.
	Backup(ctx context.Context, w io.Writer) error
	// FinishUpgrade has the store written in the newest format; *store.OlderServerError
	// where a server is up that does not read it.
	FinishUpgrade(ctx context.Context) error
	// Members are the embedded stores that form a cluster with this one.
	Members() []api.StoreMember
	AddMember(ctx context.Context, name, address string) (api.StoreMember, error)
	RemoveMember(ctx context.Context, name string) error
}

// Codec turns objects into what is stored and back; *store.Codec is one.
type Codec interface {
	EncodeSpec(object api.Object) ([]byte, error)
	EncodeStatus(object api.Object) ([]byte, error)
	DecodeSpec(kind api.Kind, value []byte) (api.Object, error)
	DecodeStatus(object api.Object, value []byte) error
	// Seal and Unseal show one server that a text comes from another one.
	Seal(key api.Key, field, text string) string
	Unseal(key api.Key, field, sealed string) (string, error)
}

// Decisions is what the API needs of the reconciler.
type Decisions interface {
	// Settle waits until every decision that follows from a revision is durable
	// and in the fleet.
	Settle(ctx context.Context, revision int64) error
	// Explain says why a placement or a workload has the clusters it has.
	Explain(key api.Key) (*api.Explanation, error)
	// Observe is a copy of an object with its status completed by what moves
	// without a write, or the object itself where there is nothing of that.
	Observe(object api.Object) api.Object
	// NextUnstored waits until Observe says something else of objects although nothing
	// was written, and returns their keys.
	NextUnstored(ctx context.Context) ([]api.Key, error)
	// What is previewed is what promises are about.
	promise.Decisions
	// ObservePolicy is a copy of a policy with its present bindings as status.
	ObservePolicy(policy *api.PropagationPolicy) *api.PropagationPolicy
	// ReportHealth records how a workload is doing on one of its clusters, and
	// returns when that is durable. It returns api.FieldErrors where the workload
	// does not run there.
	ReportHealth(ctx context.Context, workload api.Key, report api.HealthReport) (revision int64, err error)
	// Simulate decides without changing anything; api.FieldErrors for objects
	// that are not valid.
	Simulate(ctx context.Context, request api.Simulation) (*api.SimulationResult, error)
}

// Signals is what the API needs of the collectors.
type Signals interface {
	// Settle waits until everything that changed up to a revision has been read
	// or probed once, and returns the revision of the resulting status writes.
	Settle(ctx context.Context, revision int64) (int64, error)
	// Heartbeat takes the report of a cluster's agent. The revision is 0 where it says
	// nothing new, so that nothing was written.
	Heartbeat(ctx context.Context, cluster string, report api.Heartbeat) (revision int64, err error)
	// Report records amounts that somebody else than its agent reports about a
	// cluster.
	Report(ctx context.Context, cluster string, amounts clusterhealth.Amounts) (revision int64, err error)
	// ReportCloud takes in what a collector found about a cloud; changed is false
	// where nothing in it was new.
	ReportCloud(ctx context.Context, cloud string, report api.CloudReport) (revision int64, changed bool, err error)
	// LiveOpenStack asks the OpenStack of a cloud what it has.
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
	// Beats say when clusters were last heard of. Nil: what is stored says so.
	Beats *heartbeat.Times
	// Network says what the server connects to for objects. What it refuses already by
	// what is written is not stored.
	Network *netpolicy.Policy
	// Spot splits workloads over on-demand and spot nodes. Nil means that nothing
	// is split: what is asked about that is answered with 503.
	Spot Spot

	// Listener is where Run listens, and what it closes.
	Listener net.Listener
	// TLS is nil for plain HTTP.
	TLS *tls.Config
	// Authenticate demands a token of every request that is not a health check,
	// even while there are no tokens. Without it everybody is an administrator
	// until the first token is created; from then on tokens are demanded.
	Authenticate bool
	// Issuers verifies JSON Web Tokens of trusted issuers. If set, every request needs a
	// token. Nil = only tokens of the server are accepted.
	Issuers *jwt.Verifier

	// Version is what /v1/server says.
	Version string
	// Name is what people call this server among several.
	Name string
	// Leader says which of several servers makes the decisions. Nil means that there is
	// no other one.
	Leader Leader
	// Checks are what readiness looks at beyond what this package knows itself. Nil
	// means nothing.
	Checks func() []Check
	// Faults is told of panics, and says which objects they were about and which
	// components they ended. Nil knows of none.
	Faults *fault.Recorder
	// Gatherer is what /metrics shows. It should hold the Collectors of this
	// server. Nil means prometheus.DefaultGatherer.
	Gatherer prometheus.Gatherer

	// MaxBodyBytes limits the body of a request. Zero means 1 MiB.
	MaxBodyBytes int64
	// MaxSimulationBytes limits the body of a simulation, which may hold a whole
	// fleet. Zero means 64 MiB.
	MaxSimulationBytes int64
	// MaxPreviews limits how many previews are kept: each plan of a placement with
	// one makes another, and whoever may read may plan. Zero means 50,000.
	MaxPreviews int
	// Connections limits the open connections. Nil means a limit of this server's
	// own.
	Connections *serve.Limit
	// LoginFailuresPerSecond and LoginFailureBurst limit failed logins of one
	// client address. Zero means 1 a second after 20 at once.
	LoginFailuresPerSecond float64
	LoginFailureBurst      int
	// HeaderTimeout limits how long the header of a request may take, and the TLS
	// handshake before it. Zero means 5 seconds.
	HeaderTimeout time.Duration
	// BodyTimeout limits how long a body may take. Zero means 30 seconds.
	BodyTimeout time.Duration
	// WatchHeartbeat is the time between two signs of life on a quiet watch. Zero
	// means 15 seconds.
	WatchHeartbeat time.Duration
	// WatchWriteTimeout is how long the reader of a watch may take for one piece
	// of it. Zero means 10 seconds.
	WatchWriteTimeout time.Duration
	// DrainTime is how long requests may go on when Run ends. Zero means 10
	// seconds.
	DrainTime time.Duration

	// Logger receives a line for each request, and what goes wrong. Nil discards
	// it.
	Logger *slog.Logger
	// Now is the clock of timestamps and expiries. Nil means time.Now.
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
		o.Beats = &heartbeat.Times{}
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
	waits    *waits
	watches  *watches
	previews *previews
	pictures *pictures
	reports  *reports
	status   *status
	relay    *relay

	stop      context.CancelFunc // wakes everybody who waits
	listening chan struct{}      // closed when Run listens
}

// New makes a server; Run serves.
func New(options Options) (*Server, error) {
	o := options.withDefaults()
	if o.Store == nil || o.Fleet == nil || o.Codec == nil || o.Decisions == nil || o.Signals == nil {
		return nil, errors.New("httpapi: Store, Fleet, Codec, Decisions and Signals are required")
	}
	s := &Server{
		options: o, logger: o.Logger, metrics: newHTTPMetrics(),
		logins:    auth.NewLoginLimit(o.LoginFailuresPerSecond, o.LoginFailureBurst),
		sessions:  auth.NewSessions(o.Fleet, o.Authenticate || o.Issuers != nil, o.Logger, o.Now),
		listening: make(chan struct{}),
	}
	var stopping context.Context
	stopping, s.stop = context.WithCancel(context.Background())
	s.waits = &waits{store: o.Store, fleet: o.Fleet, decisions: o.Decisions, signals: o.Signals, logger: o.Logger, stopping: stopping}
	s.waits.leading = newLeading(o, s.waits, s.sessions)
	answers, err := serve.Compress(s.routes(), watchPath, backupPath)
	if err != nil {
		return nil, err
	}
	guarded := s.survive(limitWork(sameSite(s.authenticate(s.waits.leading.keepCredentials(s.waits.leading.current(s.reports.direct(answers)))))))
	s.handler = serve.LimitTime(s.observe(guarded), o.BodyTimeout, operation.MaxWait+simulationTime)
	return s, nil
}

// sameSite refuses what a page of another site makes a browser send: a server
// on loopback has no other protection against that.
func sameSite(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problem.Write(w, problem.New(api.ProblemCrossOrigin, "pages of other sites must not change anything here"))
	}))
	return protection.Handler(next)
}

// Listening is closed when Run listens.
func (s *Server) Listening() <-chan struct{} { return s.listening }

// Run serves until ctx ends. Then it reports itself as not ready, lets nobody
// wait any longer, and gives the requests under way DrainTime to finish. A
// server runs once.
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
		"memory of watches": s.watches.events.encoded.giveBack,
		"pictures of lists": func(ctx context.Context) { s.pictures.sweep(ctx, s.options.Fleet.Snapshot) },
	} {
		background.Go(func() {
			_ = s.options.Faults.Component(name).Supervise(s.waits.stopping, func(ctx context.Context) error { run(ctx); return nil }) // has no error of its own
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
