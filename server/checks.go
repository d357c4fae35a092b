package main

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/certexpiry"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi"
)

// certificateSources returns the server's own certificates, and those that it verifies others with.
func (s *server) certificateSources() []certexpiry.Source {
	var sources []certexpiry.Source
	if s.tls != nil {
		sources = s.tls.Sources()
	}
	if s.spot.authority != nil {
		sources = append(sources, s.spot.authority.CertificateSources()...)
	}
	if file := s.config.ClusterCertFile; file != "" {
		sources = append(sources, certexpiry.Source{Use: "cluster", Read: certexpiry.File(file)})
	}
	if file := s.config.ClusterCAFile; file != "" {
		sources = append(sources, certexpiry.Source{Use: "cluster_ca", Read: certexpiry.File(file)})
	}
	if file := s.config.EtcdCertFile; file != "" {
		sources = append(sources, certexpiry.Source{Use: "etcd_client", Read: certexpiry.File(file)})
	}
	if file := s.config.EtcdCAFile; file != "" {
		sources = append(sources, certexpiry.Source{Use: "etcd_ca", Read: certexpiry.File(file)})
	}
	return sources
}

// checks returns the readiness checks of the server's parts.
func (s *server) checks() []httpapi.Check {
	list := []httpapi.Check{{Name: "store", State: httpapi.CheckOK}}
	if err := s.store.Writable(); err != nil {
		list[0].State, list[0].Detail = httpapi.CheckError, err.Error()
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
