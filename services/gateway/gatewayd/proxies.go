package gatewayd

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// proxies are the networks whose word about a client's address is believed.
type proxies []netip.Prefix

func parseProxies(list []string) (proxies, error) {
	var all proxies
	for _, text := range list {
		if a, err := netip.ParseAddr(text); err == nil {
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("WEIR_TRUSTED_PROXIES: %q is neither an address nor a network", text)
		}
		all = append(all, p)
	}
	return all, nil
}

func (p proxies) trust(a netip.Addr) bool {
	for _, n := range p {
		if n.Contains(a.Unmap()) {
			return true
		}
	}
	return false
}

// remote gives the client's address: the peer's, or, as long as that is a trusted proxy, the one before it in
// X-Forwarded-For, read from the end, where the nearest proxy wrote.
func (p proxies) remote(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	at := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && p.trust(at); i-- {
		before, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		at = before.Unmap()
	}
	return at.String()
}
