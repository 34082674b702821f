package env

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// protocols begin the addresses of service links.
var protocols = []string{"tcp", "udp", "sctp"}

// The names that container runtimes make of the name of a service, in capitals and with
// _ for -, for each container of its namespace: Kubernetes, "Discovering services" of its
// documentation of Service, and Docker's links, of which those are a copy.
var (
	linkHost    = regexp.MustCompile(`_SERVICE_HOST$`)
	linkService = regexp.MustCompile(`_SERVICE_PORT(_[A-Z0-9_]+)?$`)
	linkURL     = regexp.MustCompile(`_PORT(_[0-9]+_(TCP|UDP|SCTP))?$`)
	linkPart    = regexp.MustCompile(`_PORT_[0-9]+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)$`)
)

// serviceLink reports whether a container runtime has made the variable of the name of a
// service, by its name and value: a service called argon, or argon-foo.
func serviceLink(name, value string) bool {
	switch {
	case linkPart.MatchString(name):
		switch name[strings.LastIndexByte(name, '_')+1:] {
		case "PROTO":
			return slices.Contains(protocols, value)
		case "PORT":
			return number(1, 65535)(value)
		}
		_, err := netip.ParseAddr(value)
		return err == nil
	case linkHost.MatchString(name):
		_, err := netip.ParseAddr(value)
		return err == nil
	case linkService.MatchString(name):
		return number(1, 65535)(value)
	case linkURL.MatchString(name):
		scheme, at, ok := strings.Cut(value, "://")
		return ok && slices.Contains(protocols, scheme) && hostPort(at)
	}
	return false
}

// Foreign lists, a line each, the variables of environ that begin as argon's do and
// are none of them, and that Check lets pass: service links of container runtimes, and what
// resembles no variable of argon.
func Foreign(environ []string) []string {
	var all []string
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, Prefix) || find(name) != nil {
			continue
		}
		switch {
		case serviceLink(name, value):
			all = append(all, fmt.Sprintf("%s is passed over: the link of a service that a container runtime has set", printable(name)))
		case nearest(name) == "":
			all = append(all, fmt.Sprintf("%s is passed over: no variable of argon has a name like it", printable(name)))
		}
	}
	return all
}
