//go:build faults

package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// decided is a transaction of derived state that etcd accepted.
type decided struct {
	server   string // the server that sent it
	term     int64  // the creation revision of the leader's election key
	revision int64  // revision at which etcd wrote it
}

// span is the server of a term, and the first and last revision that it wrote.
type span struct {
	server      string
	first, last int64
}

// terms are the terms in which derived state was written.
type terms map[int64]*span

// note records a transaction. Each term belongs to one server.
func (t terms) note(d decided) error {
	s := t[d.term]
	if s == nil {
		t[d.term] = &span{d.server, d.revision, d.revision}
		return nil
	}
	s.first, s.last = min(s.first, d.revision), max(s.last, d.revision)
	if s.server != d.server {
		return fmt.Errorf("%s and %s write in term %d", s.server, d.server, d.term)
	}
	return nil
}

// inOrder checks that all writes of a term precede those of the next.
func (t terms) inOrder() error {
	var errs []error
	var before *span
	for _, term := range slices.Sorted(maps.Keys(t)) {
		s := t[term]
		if before != nil && s.first <= before.last {
			errs = append(errs, fmt.Errorf("%s writes at revision %d in term %d, although %s wrote at revision %d in an earlier term", s.server, s.first, term, before.server, before.last))
		}
		before = s
	}
	return errors.Join(errs...)
}

// record records the decisions of servers, observed between them and etcd.
type record struct {
	mu    sync.Mutex
	terms terms
	// twice are the errors about terms in which two servers wrote.
	twice []error
	// by is the number of transactions of derived state that etcd accepted from each server.
	by map[string]int
	// sending is called with the server that sends derived state, before etcd receives it; nil = not called.
	sending func(server string)
}

func newRecord() *record { return &record{terms: terms{}, by: map[string]int{}} }

// ask sets a function that is called with every server that sends derived state; nil ends it.
func (r *record) ask(sending func(server string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sending = sending
}

// send is called when a server sends derived state, before it is forwarded.
func (r *record) send(server string) {
	r.mu.Lock()
	sending := r.sending
	r.mu.Unlock()
	if sending != nil {
		sending(server)
	}
}

func (r *record) note(d decided) {
	if d.term < 0 {
		return // a previewed decision, written with the spec by the server that received the request
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[d.server]++
	if err := r.terms.note(d); err != nil {
		r.twice = append(r.twice, err)
	}
}

// counts returns the number of transactions of derived state that etcd accepted from each server.
func (r *record) counts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.by)
}

// verdict returns the number of terms, and an error if any of them overlap.
func (r *record) verdict() (count int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.terms), errors.Join(append(r.twice, r.terms.inOrder())...)
}

// tap forwards the calls of one server to one member of etcd, and records its decisions.
type tap struct {
	server  string
	record  *record
	member  *grpc.ClientConn
	address string
}

func startTap(t testing.TB, server, member string, r *record) *tap {
	t.Helper()
	connection, err := grpc.NewClient("passthrough:///"+member, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1, MaxDelay: 50 * time.Millisecond}}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x := &tap{server: server, record: r, member: connection, address: listener.Addr().String()}
	s := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(x.carry), grpc.MaxRecvMsgSize(64<<20))
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(listener) }) // until Stop
	t.Cleanup(func() {
		s.Stop()
		serving.Wait()
		connection.Close()
	})
	return x
}

// carry forwards one call.
func (x *tap) carry(_ any, in grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(in)
	from, _ := metadata.FromIncomingContext(in.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(in.Context(), from))
	defer cancel()
	out, err := x.member.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		return err
	}
	var term int64 // of the transaction, 0 = no derived state
	requested := make(chan struct{})
	go func() {
		var once sync.Once
		defer once.Do(func() { close(requested) })
		for {
			var f frame
			if in.RecvMsg(&f) != nil {
				_ = out.CloseSend() // the error is returned at the end of the call
				return
			}
			if method == "/etcdserverpb.KV/Txn" {
				if term = termOf(f); term > 0 {
					x.record.send(x.server)
				}
			}
			once.Do(func() { close(requested) })
			if out.SendMsg(&f) != nil {
				return
			}
		}
	}()
	for {
		var f frame
		if err := out.RecvMsg(&f); err != nil {
			in.SetTrailer(out.Trailer())
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		<-requested
		if term != 0 {
			x.note(term, f)
		}
		if err := in.SendMsg(&f); err != nil {
			return err
		}
	}
}

// note records an accepted transaction.
func (x *tap) note(term int64, f frame) {
	var answer etcdserverpb.TxnResponse
	if proto.Unmarshal(f.bytes, &answer) != nil || !answer.Succeeded {
		return
	}
	x.record.note(decided{x.server, term, answer.Header.Revision})
}

// termOf returns the term in which a transaction writes derived state, or 0 if it writes none.
func termOf(f frame) int64 {
	var txn etcdserverpb.TxnRequest
	if proto.Unmarshal(f.bytes, &txn) != nil {
		return 0
	}
	derives := false
	for _, op := range txn.Success {
		put := op.GetRequestPut()
		derives = derives || put != nil && strings.HasPrefix(string(put.Key), "/v1/status/")
	}
	if !derives {
		return 0
	}
	for _, c := range txn.Compare {
		if c.Target == etcdserverpb.Compare_CREATE && strings.HasPrefix(string(c.Key), "/v1/sys/live/servers/") {
			return c.GetCreateRevision()
		}
	}
	return -1 // not written by a leader
}

// frame is a message that is not parsed.
type frame struct{ bytes []byte }

// rawCodec leaves messages as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(*frame).bytes)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	v.(*frame).bytes = data.Materialize()
	return nil
}
