import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mustRun } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';

// A first run downloads and compiles the packages of Kubernetes.
jest.setTimeout(1_500_000);

const SOURCE = path.join(__dirname, 'kubernetes');
const CACHE = path.join(ROOT, '.cache/e2e/kubernetes');
const CHECKER = path.join(CACHE, 'check-manifests');
const VALIDATOR = path.join(CACHE, 'bin/kubernetes-validate');
const MANIFESTS = path.join(ROOT, 'deploy/kubernetes');
const FILES = readdirSync(MANIFESTS);
const folder = temporaryFolder();

/** The Go modules that contain the definitions of the custom resources, and the files in these modules. */
const DEFINITIONS = [
  [
    'github.com/kedacore/keda/v2@v2.20.2',
    'config/crd/bases/keda.sh_scaledobjects.yaml',
    'config/crd/bases/keda.sh_triggerauthentications.yaml',
  ],
  [
    'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    'example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml',
    'example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml',
  ],
] as const;

/**
 * The kinds of the Temporal Worker Controller. No package registry has their definitions, so only the pods of a WorkerDeployment
 * are checked.
 */
const WITHOUT_DEFINITION = ['Connection', 'WorkerDeployment'];

/** The versions of Kubernetes that docs/deployment.md names. */
function documentedVersions(): string[] {
  const page = readFileSync(path.join(ROOT, 'docs/deployment.md'), 'utf8');
  const [, first, last] = /Kubernetes 1\.(\d+) to 1\.(\d+)/.exec(page) ?? [];
  const count = Number(last) - Number(first) + 1;
  return Array.from({ length: count }, (_, index) => `1.${Number(first) + index}`);
}
const VERSIONS = documentedVersions();

interface CheckedObject {
  readonly kind: string;
  readonly problems: string[];
  readonly warnings: string[];
  readonly podSecurity: Record<string, string> | null;
}

interface Connection {
  readonly direction: 'egress' | 'ingress';
  readonly ip: string;
  readonly namespace?: string;
  readonly protocol: 'TCP' | 'UDP';
  readonly port: number;
}

let definitions: string[];

async function checkManifests(manifests: readonly string[], connections: readonly Connection[] = []) {
  const withoutDefinition = WITHOUT_DEFINITION;
  const input = { manifests, definitions, withoutDefinition, podSecurityVersions: VERSIONS, connections };
  const output = await mustRun(CHECKER, [], { stdin: JSON.stringify(input) });
  return JSON.parse(output) as { objects: CheckedObject[]; allowed: boolean[] };
}

async function downloadDefinitions(): Promise<string[]> {
  const modules = DEFINITIONS.map(([module]) => module);
  // Outside of the checker's module, go.sum need not list these modules.
  const output = await mustRun('go', ['mod', 'download', '-json', ...modules], { cwd: folder });
  const downloaded = JSON.parse(`[${output.replace(/\}\s*\{/g, '},{')}]`) as { Path: string; Dir: string }[];
  return DEFINITIONS.flatMap(([module, ...files]) => {
    const { Dir } = downloaded.find(({ Path }) => module.startsWith(`${Path}@`)) ?? { Dir: '' };
    return files.map((file) => path.join(Dir, file));
  });
}

beforeAll(async () => {
  await mustRun('go', ['build', '-o', CHECKER, '.'], { cwd: SOURCE });
  definitions = await downloadDefinitions();
  await mustRun('python3', ['-m', 'venv', CACHE]);
  await mustRun(path.join(CACHE, 'bin/python'), [
    '-m',
    'pip',
    'install',
    '-q',
    'kubernetes-validate==1.37.0',
  ]);
});

const manifests = FILES.map((file) => path.join(MANIFESTS, file));
const prometheusRule = path.join(ROOT, 'deploy/prometheus/prometheus-rule.yaml');

it('the API server accepts every manifest without a warning, and removes no field', async () => {
  const { objects } = await checkManifests([...manifests, prometheusRule]);
  expect(objects.map(({ kind }) => kind).sort()).toEqual([
    'ConfigMap',
    'Connection',
    'Deployment',
    'NetworkPolicy',
    'PodDisruptionBudget',
    'PodMonitor',
    'PrometheusRule',
    'ScaledObject',
    'ServiceAccount',
    'TriggerAuthentication',
    'WorkerDeployment',
  ]);
  for (const { problems, warnings } of objects) expect([problems, warnings]).toEqual([[], []]);
});

it('Pod Security admits the pods at the level "restricted", in each version that the docs name', async () => {
  const { objects } = await checkManifests(manifests);
  const admitted = Object.fromEntries(VERSIONS.map((version) => [version, '']));
  const withPods = objects.filter(({ podSecurity }) => podSecurity !== null);
  expect(withPods.map(({ kind, podSecurity }) => [kind, podSecurity])).toEqual([
    ['Deployment', admitted],
    ['WorkerDeployment', admitted],
  ]);
});

it.each(VERSIONS)('the manifests match the schemas of Kubernetes %s', async (version) => {
  const files = ['base.yaml', 'deployment.yaml'].map((file) => path.join(MANIFESTS, file));
  const output = await mustRun(VALIDATOR, ['--strict', '-k', version, ...files]);
  expect(output.match(new RegExp(`passed for resource \\S+ against version ${version}`, 'g'))).toHaveLength(
    5,
  );
});

// Each row has a file, a text in the file, its replacement, and the expected problem, warning or violation.
it.each<[string, string, string, string, RegExp]>([
  ['an unknown field', 'deployment.yaml', 'enableServiceLinks:', 'enableServiceLink:', /unknown field/],
  ['a selector without pods', 'deployment.yaml', 'metadata: { labels: *labels }', 'metadata: {}', /selector/],
  ['an exception outside of its network', 'base.yaml', "'fe80::/10'", '10.0.0.0/8', /strict subset/],
  ['pods that may run as root', 'deployment.yaml', 'runAsNonRoot: true', '', /runAsNonRoot != true/],
  ['capabilities', 'deployment.yaml', 'capabilities: { drop: [ALL] }', '', /unrestricted capabilities/],
  ['an unknown field of a custom resource', 'keda.yaml', 'minReplicaCount', 'minReplicas', /unknown field/],
  [
    'an unknown field of versioned pods',
    'worker-controller.yaml',
    'livenessProbe:',
    'liveProbe:',
    /unknown field/,
  ],
])('the checks of this file report %s', async (_, file, text, replacement, expected) => {
  const original = readFileSync(path.join(MANIFESTS, file), 'utf8');
  expect(original).toContain(text);
  const changed = path.join(folder, file);
  await writeFile(changed, original.replace(text, replacement));
  const { objects } = await checkManifests([changed]);
  expect(JSON.stringify(objects)).toMatch(expected);
});

describe('the network policy', () => {
  type Row = [string, Omit<Connection, 'direction' | 'protocol'> & Partial<Connection>];
  const evaluate = async (connection: Row[1]) => {
    const complete = { direction: 'egress', protocol: 'TCP', ...connection } as const;
    const files = ['base.yaml', 'deployment.yaml'].map((file) => path.join(MANIFESTS, file));
    const { allowed } = await checkManifests(files, [complete]);
    return allowed;
  };

  it.each<Row>([
    ['DNS pods in kube-system', { ip: '10.0.0.10', namespace: 'kube-system', protocol: 'UDP', port: 53 }],
    ['DNS pods in kube-system, with TCP', { ip: '10.0.0.10', namespace: 'kube-system', port: 53 }],
    ['DNS pods with IPv6', { ip: 'fd00::10', namespace: 'kube-system', protocol: 'UDP', port: 53 }],
    ['the DNS cache of a node (NodeLocal DNSCache)', { ip: '169.254.20.10', protocol: 'UDP', port: 53 }],
    ['a DNS cache at the address of the DNS service', { ip: '10.96.0.10', protocol: 'UDP', port: 53 }],
    ['Cloud DNS of GKE', { ip: '169.254.169.254', protocol: 'UDP', port: 53 }],
    ['DNS pods of OpenShift', { ip: '10.1.0.2', namespace: 'openshift-dns', protocol: 'UDP', port: 5353 }],
    ['a Temporal server in the cluster', { ip: '10.0.0.7', namespace: 'temporal', port: 7233 }],
    ['an agent service with IPv4', { ip: '203.0.113.7', port: 443 }],
    ['an agent service with IPv6', { ip: '2001:db8::7', port: 443 }],
    ['Prometheus', { direction: 'ingress', ip: '10.0.0.9', namespace: 'monitoring', port: 9464 }],
  ])('allows %s', async (_, connection) => {
    expect(await evaluate(connection)).toEqual([true]);
  });

  it.each<Row>([
    ['the metadata service of a cloud', { ip: '169.254.169.254', port: 80 }],
    ['a metadata service with TLS', { ip: '169.254.169.254', port: 443 }],
    ['the metadata service of AWS with IPv6', { ip: 'fd00:ec2::254', port: 443 }],
    ['the metadata service of Google with IPv6', { ip: 'fd20:ce::254', port: 443 }],
    ['the metadata service of Oracle with IPv6', { ip: 'fd00:c1::a9fe:a9fe', port: 443 }],
    ['a link-local address with IPv6', { ip: 'fe80::1', port: 443 }],
    ['another port of a host outside the cluster', { ip: '203.0.113.7', port: 22 }],
    ['another pod in the cluster', { ip: '10.0.0.8', namespace: 'default', port: 5432 }],
    ['port 5353 of other pods', { ip: '10.0.0.8', namespace: 'default', protocol: 'UDP', port: 5353 }],
    [
      'health checks of other pods',
      { direction: 'ingress', ip: '10.0.0.9', namespace: 'default', port: 9465 },
    ],
    ['metrics for other pods', { direction: 'ingress', ip: '10.0.0.9', namespace: 'default', port: 9464 }],
  ])('blocks %s', async (_, connection) => {
    expect(await evaluate(connection)).toEqual([false]);
  });
});
