// Package deploy tests what deploy/ has: that the manifests are what Kubernetes takes, and that the NATS users of the
// base may do what their services do, and no more.
package deploy

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

const base = "../../deploy/k8s/base"

// manifests are the objects of the base, by kind and name.
type manifests struct {
	configs map[string]*corev1.ConfigMap
	pods    map[string]*corev1.PodTemplateSpec
	secrets map[string]*corev1.Secret
}

// read decodes every manifest strictly.
func read(t *testing.T) manifests {
	t.Helper()
	m := manifests{configs: map[string]*corev1.ConfigMap{}, pods: map[string]*corev1.PodTemplateSpec{}, secrets: map[string]*corev1.Secret{}}
	files, err := filepath.Glob(filepath.Join(base, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(text), "\n---\n") {
			m.add(t, file, []byte(doc))
		}
	}
	return m
}

func (m manifests) add(t *testing.T, file string, doc []byte) {
	t.Helper()
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(doc, &head); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	decode := func(into any) {
		if err := yaml.UnmarshalStrict(doc, into); err != nil {
			t.Errorf("%s: %s: %v", file, head.Kind, err)
		}
	}
	switch head.APIVersion + " " + head.Kind {
	case "v1 ConfigMap":
		var x corev1.ConfigMap
		decode(&x)
		m.configs[x.Name] = &x
	case "v1 Secret":
		var x corev1.Secret
		decode(&x)
		m.secrets[x.Name] = &x
	case "v1 Service":
		decode(&corev1.Service{})
	case "apps/v1 StatefulSet":
		var x appsv1.StatefulSet
		decode(&x)
		m.pods[x.Name] = &x.Spec.Template
	case "apps/v1 Deployment":
		var x appsv1.Deployment
		decode(&x)
		m.pods[x.Name] = &x.Spec.Template
	case "networking.k8s.io/v1 NetworkPolicy":
		decode(&networkingv1.NetworkPolicy{})
	default:
		t.Errorf("%s: what is a %s %q?", file, head.APIVersion, head.Kind)
	}
}

// env gives the environment of a pod's only container; secretKey makes the values that come from Secrets.
func (m manifests) env(t *testing.T, pod string, secretKey func(name, key string) string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, e := range m.pods[pod].Spec.Containers[0].Env {
		value := e.Value
		if from := e.ValueFrom; from != nil && from.SecretKeyRef != nil {
			value = secretKey(from.SecretKeyRef.Name, from.SecretKeyRef.Key)
		} else if from != nil {
			value = pod + "-0"
		}
		for name, v := range out { // as Kubernetes expands what stands before
			value = strings.ReplaceAll(value, "$("+name+")", v)
		}
		out[e.Name] = value
	}
	return out
}

// TestKustomization: it lists every file of its folder.
func TestKustomization(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(base, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var k struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Resources  []string `json:"resources"`
		Labels     []struct {
			Pairs            map[string]string `json:"pairs"`
			IncludeSelectors bool              `json:"includeSelectors"`
		} `json:"labels"`
	}
	if err := yaml.UnmarshalStrict(text, &k); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{}
	for _, e := range entries {
		if e.Name() != "kustomization.yaml" {
			want = append(want, e.Name())
		}
	}
	slices.Sort(k.Resources)
	if !slices.Equal(k.Resources, want) {
		t.Errorf("the kustomization lists %q, the folder has %q", k.Resources, want)
	}
}

// TestManifests: every manifest is what Kubernetes takes, every setting one that exists, and no pod has more rights
// than it needs.
func TestManifests(t *testing.T) {
	m := read(t)
	doc, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	known := regexp.MustCompile("`(WEIR_[A-Z_]+)`").FindAllStringSubmatch(string(doc), -1)
	is := func(b *bool, want bool) bool { return b != nil && *b == want }
	for _, name := range []string{"nats", "host", "router", "gateway"} {
		if m.pods[name] == nil {
			t.Fatalf("no %s", name)
		}
		spec := m.pods[name].Spec
		if !is(spec.EnableServiceLinks, false) || !is(spec.AutomountServiceAccountToken, false) {
			t.Errorf("%s: service links or a service account's token", name)
		}
		if s := spec.SecurityContext; s == nil || !is(s.RunAsNonRoot, true) || s.RunAsUser == nil || *s.RunAsUser == 0 {
			t.Errorf("%s may run as root", name)
		}
		if len(spec.Containers) != 1 {
			t.Fatalf("%s has %d containers", name, len(spec.Containers))
		}
		c := spec.Containers[0]
		if s := c.SecurityContext; s == nil || !is(s.ReadOnlyRootFilesystem, true) || !is(s.AllowPrivilegeEscalation, false) {
			t.Errorf("%s may write its root filesystem or gain rights", name)
		}
		if c.LivenessProbe == nil || c.ReadinessProbe == nil {
			t.Fatalf("%s has no probes", name)
		}
		if name != "nats" && (c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz") {
			t.Errorf("%s is probed at %s and %s", name, c.LivenessProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path)
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
			t.Errorf("%s requests nothing", name)
		}
		limit := false
		for _, e := range c.Env {
			limit = limit || e.Name == "GOMEMLIMIT"
			if strings.HasPrefix(e.Name, "WEIR_") && !slices.ContainsFunc(known, func(k []string) bool { return k[1] == e.Name }) {
				t.Errorf("%s sets %s, which docs/settings.md does not list", name, e.Name)
			}
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				ref := e.ValueFrom.SecretKeyRef
				if s := m.secrets[ref.Name]; s == nil || s.StringData[ref.Key] == "" {
					t.Errorf("%s reads %s of the Secret %s, which has no such key", name, ref.Key, ref.Name)
				}
			}
		}
		if !limit {
			t.Errorf("%s has no GOMEMLIMIT", name)
		}
		for _, v := range spec.Volumes {
			if v.ConfigMap != nil && m.configs[v.ConfigMap.Name] == nil || v.Secret != nil && m.secrets[v.Secret.SecretName] == nil {
				t.Errorf("%s mounts %s, which is not there", name, v.Name)
			}
		}
		// Every mount has a volume; claims are volumes by their template's name.
		for _, mount := range c.VolumeMounts {
			if !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name }) && mount.Name != "data" {
				t.Errorf("%s mounts %s, which is no volume", name, mount.Name)
			}
		}
	}
	if !reflect.DeepEqual(m.pods["router"].Spec.SecurityContext, m.pods["gateway"].Spec.SecurityContext) {
		t.Error("routers and gateways run with different rights")
	}
	if !strings.Contains(m.configs["nats-config"].Data["nats.conf"], "sync_interval: always") {
		t.Error("NATS may lose what it acknowledged")
	}
}
