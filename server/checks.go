package main

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/expiry"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi"
)

// certificateSources returns the server's own certificates, and those that it verifies others with.
func (s *server) certificateSources() []expiry.Source {
	var sources []expiry.Source
	if s.tls != nil {
		sources = s.tls.Sources()
	}
	if s.spot.authority != nil {
		sources = append(sources, s.spot.authority.CertificateSources()...)
	}
	if file := s.config.ClusterCertFile; file != "" {
		sources = append(sources, expiry.Source{Use: "cluster", Read: expiry.File(file)})
	}
	if file := s.config.ClusterCAFile; file != "" {
		sources = append(sources, expiry.Source{Use: "cluster_ca", Read: expiry.File(file)})
	}
	if file := s.config.EtcdCertFile; file != "" {
		sources = append(sources, expiry.Source{Use: "etcd_client", Read: expiry.File(file)})
	}
	if file := s.config.EtcdCAFile; file != "" {
		sources = append(sources, expiry.Source{Use: "etcd_ca", Read: expiry.File(file)})
	}
	return sources
}

// checks returns the readiness checks of the server's parts.
func (s *server) checks() []httpapi.Check {
	list := []httpapi.Check{{Name: "store", State: httpapi.CheckOK}}
	if err := s.store.Writable(); err != nil {
		list[0].State, list[0].Detail = httpapi.CheckError, err.Error()
	}
	if current := s.leading.current.Load(); current != nil {
		for _, part := range current.hub {
			c := httpapi.Check{Name: part.name, State: httpapi.CheckOK}
			if part.Failure() != nil {
				c.State, c.Detail = httpapi.CheckWarning, part.fails+": the log says why"
			}
			list = append(list, c)
		}
	}
	for _, f := range s.certificates.Findings() {
		c := httpapi.Check{Name: "certificate " + f.Use, State: httpapi.CheckOK}
		if f.Certificate != nil {
			c.Detail = f.Certificate.Subject.String() + " expires at " + f.Certificate.NotAfter.UTC().Format("2006-01-02T15:04:05Z")
		}
		if f.Problem != "" {
			c.State, c.Detail = httpapi.CheckWarning, f.Problem
		}
		list = append(list, c)
	}
	return list
}
