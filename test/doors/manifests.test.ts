import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { loadConfig } from '../../src/worker/config';
import { shutdownLimitMs } from '../../src/worker/plugin';
import { VARIABLES } from '../../src/worker/variables';
import { selfSignedCertificate } from '../agent-api/self-signed-certificate';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';

const DEPLOY = path.join(ROOT, 'deploy');
/** `AGENT_API_TIMEOUT` where nobody sets it. */
const DEFAULT_TIMEOUT_MS = 30_000;
const read = (file: string) => readFileSync(path.join(DEPLOY, file), 'utf8');

/** What is looked at here; deploy.doors.test.ts has the schemas checked. */
interface Container {
  env: { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string; key: string } } }[];
  envFrom: { configMapRef: { name: string } }[];
  ports: { name: string; containerPort: number }[];
}
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data: Readonly<Record<string, string>>;
  readonly spec: {
    readonly hostPort: string;
    readonly workerOptions: { readonly temporalNamespace: string };
    readonly template: { readonly spec: { readonly containers: [Container] } };
  };
}
const manifests = readdirSync(path.join(DEPLOY, 'kubernetes')).flatMap((file) =>
  parseAllDocuments(read(`kubernetes/${file}`)).map((document) => document.toJS() as Manifest),
);
const byKind = Object.fromEntries(manifests.map((each) => [each.kind, each])) as Record<
  'ConfigMap' | 'Deployment' | 'Connection' | 'WorkerDeployment',
  Manifest
>;
const { ConfigMap: settings, Deployment: deployment } = byKind;
const { Connection: connection, WorkerDeployment: versioned } = byKind;

type Secrets = Readonly<Record<string, Readonly<Record<string, string>>>>;
const { cert, key } = selfSignedCertificate();
const API_KEY = { temporal: { 'api-key': 'a-key-of-temporal' } };
const MUTUAL_TLS = { 'temporal-tls': { 'tls.crt': cert, 'tls.key': key, 'ca.crt': cert } };

const folder = temporaryFolder();

/** The environment that Kubernetes makes for the worker; a secret that is not there sets nothing. */
function environmentOf({ spec }: Manifest, secrets: Secrets, injected: Record<string, string> = {}) {
  const [{ env, envFrom }] = spec.template.spec.containers;
  expect(envFrom).toEqual([{ configMapRef: { name: settings.metadata.name } }]);
  const own = env.map(({ name, value, valueFrom }) => {
    const { name: secret = '', key = '' } = valueFrom?.secretKeyRef ?? {};
    return [name, value ?? secrets[secret]?.[key]];
  });
  const AGENT_API_KEY_FILE = path.join(folder, 'key');
  writeFileSync(AGENT_API_KEY_FILE, 'an-admin-key-of-the-service');
  return { ...settings.data, ...(Object.fromEntries(own) as object), ...injected, AGENT_API_KEY_FILE };
}

/** What the Temporal Worker Controller adds to each container (1.8, `ApplyControllerPodSpecModifications`). */
const INJECTED = {
  TEMPORAL_ADDRESS: connection.spec.hostPort,
  TEMPORAL_NAMESPACE: versioned.spec.workerOptions.temporalNamespace,
  TEMPORAL_DEPLOYMENT_NAME: `agents/${versioned.metadata.name}`,
  TEMPORAL_WORKER_BUILD_ID: 'agent-follow-up-worker-0.3.0-1a2b',
};

describe('the environment of the pods', () => {
  it.each<[string, Secrets, object]>([
    ['without credentials', {}, { tls: undefined, apiKey: undefined }],
    ['with an API key', API_KEY, { tls: true, apiKey: 'a-key-of-temporal' }],
    ['with mutual TLS', MUTUAL_TLS, { tls: { clientCertPair: {}, serverRootCACertificate: {} } }],
  ])('is one with which the worker starts: %s', async (_, secrets, temporal) => {
    const { config } = await loadConfig(environmentOf(deployment, secrets));
    const address = settings.data.TEMPORAL_ADDRESS;
    expect(config.temporal).toMatchObject({ address, connection: temporal });
    expect(config.deploymentVersion).toBeUndefined();
    const [{ ports }] = deployment.spec.template.spec.containers;
    for (const { name, containerPort: port } of ports)
      expect(config).toHaveProperty(name, expect.objectContaining({ host: '0.0.0.0', port }));
  });

  it('is one with which the worker runs as a version where the Worker Controller adds what it adds', async () => {
    const { config } = await loadConfig(environmentOf(versioned, MUTUAL_TLS, INJECTED));
    expect(config.deploymentVersion).toEqual({
      deploymentName: INJECTED.TEMPORAL_DEPLOYMENT_NAME,
      buildId: INJECTED.TEMPORAL_WORKER_BUILD_ID,
    });
    const given = versioned.spec.template.spec.containers[0].env.map(({ name }) => name);
    expect(given.filter((name) => name in INJECTED || /CLIENT|API_KEY$/.test(name))).toEqual([]);
  });
});

describe('the manifests', () => {
  it('run the same pod with the Worker Controller as with a Deployment, but for the credentials', () => {
    const without = ({ spec }: Manifest) => {
      const copy = structuredClone(spec.template);
      const [container] = copy.spec.containers;
      container.env = container.env.filter(({ name }) => !name.startsWith('TEMPORAL_'));
      return copy;
    };
    expect(without(versioned)).toEqual(without(deployment));
  });

  it('all mean these pods', () => {
    const named = JSON.stringify(manifests).match(/(?<="app\.kubernetes\.io\/name":")[^"]+/g);
    expect(new Set(named)).toEqual(new Set([deployment.metadata.name]));
  });

  it.each([
    ['kubernetes/deployment.yaml', /terminationGracePeriodSeconds: (\d+)/],
    ['compose.yaml', /stop_grace_period: (\d+)s/],
    ['agent-follow-up-worker.service', /TimeoutStopSec=(\d+)/],
  ])('give a drain its whole time in %s', (file, pattern) => {
    const seconds = Number(pattern.exec(read(file))?.[1]);
    expect(seconds * 1_000).toBeGreaterThan(shutdownLimitMs(DEFAULT_TIMEOUT_MS));
  });

  it.each([
    ...['Dockerfile', 'compose.yaml', 'agent-follow-up-worker.service'],
    ...['base', 'deployment', 'worker-controller'].map((name) => `kubernetes/${name}.yaml`),
  ])('set only variables that there are in %s', (file) => {
    const named = read(file).match(/\b(?:AGENT_API|FOLLOW_UP)_[A-Z_]+\b/g) ?? [];
    expect(VARIABLES).toEqual(expect.arrayContaining([...new Set(named)]));
  });
});
