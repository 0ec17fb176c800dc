import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { loadConfig } from '../../src/worker/config';
import { shutdownLimitMs } from '../../src/worker/plugin';
import { VARIABLES } from '../../src/worker/variables';
import { selfSignedCertificate } from '../agent-api/self-signed-certificate';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';

const DEPLOY = path.join(ROOT, 'deploy');
/** The default of `AGENT_API_TIMEOUT`. */
const DEFAULT_TIMEOUT_MS = 30_000;
const read = (file: string) => readFileSync(path.join(DEPLOY, file), 'utf8');

/** The fields that these tests read. kubernetes.e2e.test.ts checks the manifests with Kubernetes' code. */
interface Container {
  resources: Record<'requests' | 'limits', { memory: string }>;
  volumeMounts: object[];
  env: { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string; key: string } } }[];
  envFrom: { configMapRef: { name: string } }[];
  ports: { name: string; containerPort: number }[];
}
interface Manifest {
  kind: string;
  metadata: { name: string };
  data: Record<string, string>;
  spec: {
    hostPort: string;
    workerOptions: { temporalNamespace: string };
    template: { spec: { containers: [Container] } };
  };
}
const KUBERNETES = readdirSync(path.join(DEPLOY, 'kubernetes')).map((name) => `kubernetes/${name}`);
const manifests = KUBERNETES.flatMap((file) =>
  parseAllDocuments(read(file)).map((document) => document.toJS() as Manifest),
);
const byKind = Object.fromEntries(manifests.map((each) => [each.kind, each])) as Record<
  'ConfigMap' | 'Deployment' | 'Connection' | 'WorkerDeployment',
  Manifest
>;
const { ConfigMap: settings, Deployment: deployment, Connection: connection } = byKind;
const { WorkerDeployment: versioned } = byKind;

type Secrets = Readonly<Record<string, Readonly<Record<string, string>>>>;
const { cert, key } = selfSignedCertificate();
const API_KEY = { temporal: { 'api-key': 'a-key-of-temporal' } };
const MUTUAL_TLS = { 'temporal-tls': { 'tls.crt': cert, 'tls.key': key, 'ca.crt': cert } };

const folder = temporaryFolder();

/** Returns the environment that Kubernetes gives to the worker. A missing secret sets no variable. */
function environmentOf({ spec }: Manifest, secrets: Secrets, injected: Record<string, string> = {}) {
  const [{ env, envFrom }] = spec.template.spec.containers;
  expect(envFrom).toEqual([{ configMapRef: { name: settings.metadata.name } }]);
  const containerVariables = env.map(({ name, value, valueFrom }) => {
    const { name: secret = '', key = '' } = valueFrom?.secretKeyRef ?? {};
    return [name, value ?? secrets[secret]?.[key]];
  });
  const AGENT_API_KEY_FILE = path.join(folder, 'key');
  writeFileSync(AGENT_API_KEY_FILE, 'an-admin-key-of-the-service');
  return {
    ...settings.data,
    ...(Object.fromEntries(containerVariables) as object),
    ...injected,
    AGENT_API_KEY_FILE,
  };
}

/** The variables that version 1.8 of the Temporal Worker Controller adds to each container (`ApplyControllerPodSpecModifications`). */
const INJECTED = {
  TEMPORAL_ADDRESS: connection.spec.hostPort,
  TEMPORAL_NAMESPACE: versioned.spec.workerOptions.temporalNamespace,
  TEMPORAL_DEPLOYMENT_NAME: `agents/${versioned.metadata.name}`,
  TEMPORAL_WORKER_BUILD_ID: 'agent-follow-up-worker-1.0.0-1a2b',
};

it.each<[string, Secrets, object]>([
  ['without credentials', {}, { tls: undefined, apiKey: undefined }],
  ['with an API key', API_KEY, { tls: true, apiKey: 'a-key-of-temporal' }],
  ['with mutual TLS', MUTUAL_TLS, { tls: { clientCertPair: {}, serverRootCACertificate: {} } }],
])('the worker starts with the environment of the pods: %s', async (_, secrets, temporal) => {
  const { config } = await loadConfig(environmentOf(deployment, secrets));
  const address = settings.data.TEMPORAL_ADDRESS;
  const { apiKey, tls } = config.temporal.connection;
  expect(config.temporal.address).toBe(address);
  expect({ apiKey, tls }).toMatchObject(temporal);
  expect(config.deploymentVersion).toBeUndefined();
  const [{ ports }] = deployment.spec.template.spec.containers;
  for (const { name, containerPort: port } of ports)
    expect(config).toHaveProperty(name, expect.objectContaining({ host: '::', port }));
});

it('with the Worker Controller, the same pod runs as a version; only the variables for Temporal differ', async () => {
  const { config } = await loadConfig(environmentOf(versioned, MUTUAL_TLS, INJECTED));
  expect(config.deploymentVersion).toEqual({
    deploymentName: INJECTED.TEMPORAL_DEPLOYMENT_NAME,
    buildId: INJECTED.TEMPORAL_WORKER_BUILD_ID,
  });
  const names = versioned.spec.template.spec.containers[0].env.map(({ name }) => name);
  expect(names.filter((name) => name in INJECTED || /CLIENT|API_KEY$/.test(name))).toEqual([]);
  const [deploymentPod, versionedPod] = [deployment, versioned].map(({ spec }) => {
    const copy = structuredClone(spec.template);
    const [container] = copy.spec.containers;
    container.env = container.env.filter(({ name }) => !name.startsWith('TEMPORAL_'));
    return copy;
  });
  expect(versionedPod).toEqual(deploymentPod);
});

it.each([
  ['Deployment', deployment],
  ['WorkerDeployment', versioned],
])('the pods of the %s set no user or group ID, because OpenShift rejects fixed IDs', (_, { spec }) => {
  const pod = JSON.stringify(spec.template);
  expect(pod).toContain('"runAsNonRoot":true');
  expect(pod).not.toMatch(/runAs(User|Group)|fsGroup|supplementalGroups/);
});

it('the key is mounted as a folder, because the kubelet does not update a file that is mounted with subPath', () => {
  const [{ volumeMounts }] = deployment.spec.template.spec.containers;
  expect(volumeMounts).toEqual([{ name: 'agent-api', mountPath: '/run/secrets/agent-api', readOnly: true }]);
});

it('a pod requests all memory that it may use, so that a node without free memory does not kill the worker during a POST', () => {
  const [{ resources }] = deployment.spec.template.spec.containers;
  expect(resources.requests.memory).toBe(resources.limits.memory);
});

it('all selectors match the worker pods', () => {
  const named = JSON.stringify(manifests).match(/(?<="app\.kubernetes\.io\/name":")[^"]+/g);
  expect(new Set(named)).toEqual(new Set([deployment.metadata.name]));
});

it.each([
  ['kubernetes/deployment.yaml', /terminationGracePeriodSeconds: (\d+)/],
  ['compose.yaml', /stop_grace_period: (\d+)s/],
  ['agent-follow-up-worker.service', /TimeoutStopSec=(\d+)/],
])('%s allows more time for the shutdown than the worker needs', (file, pattern) => {
  const seconds = Number(pattern.exec(read(file))?.[1]);
  expect(seconds * 1_000).toBeGreaterThan(shutdownLimitMs(DEFAULT_TIMEOUT_MS));
});

it.each(['Dockerfile', 'compose.yaml', 'agent-follow-up-worker.service', ...KUBERNETES])(
  '%s sets only variables that the worker has',
  (file) => {
    const named = read(file).match(/\b(?:AGENT_API|FOLLOW_UP)_[A-Z_]+\b/g) ?? [];
    expect(VARIABLES).toEqual(expect.arrayContaining([...new Set(named)]));
  },
);
