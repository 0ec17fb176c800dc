import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { DEFAULT_TASK_QUEUES } from '../../src/core/names';
import { loadConfig } from '../../src/worker/config';
import { shutdownLimitMs } from '../../src/worker/plugin';
import { VARIABLES } from '../../src/worker/variables';
import { selfSignedCertificate } from '../agent-api/self-signed-certificate';
import { Program } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';

const DEPLOY = path.join(ROOT, 'deploy');
/** `AGENT_API_TIMEOUT` where nobody sets it. */
const DEFAULT_TIMEOUT_MS = 30_000;
const read = (file: string) => readFileSync(path.join(DEPLOY, file), 'utf8');

/** The manifest of a kind. @throws Error where a file is no YAML, or has none */
function manifest(file: string, kind: string): unknown {
  const documents = parseAllDocuments(read(`kubernetes/${file}.yaml`), { strict: true });
  const [error] = documents.flatMap(({ errors }) => errors);
  const found = documents
    .map((document) => document.toJS() as unknown)
    .find((each) => at(each, 'kind') === kind);
  if (error !== undefined || found === undefined) throw error ?? new Error(`${file}.yaml has no ${kind}`);
  return found;
}

/** What stands there: `spec.template.metadata.labels`. */
function at(part: unknown, place: string): unknown {
  return place
    .split('.')
    .reduce<unknown>((within, name) => (within as Record<string, unknown> | undefined)?.[name], part);
}

const settings = manifest('base', 'ConfigMap');
const policy = manifest('base', 'NetworkPolicy');
const budget = manifest('base', 'PodDisruptionBudget');
const deployment = manifest('deployment', 'Deployment');
const versioned = manifest('worker-controller', 'WorkerDeployment');
const connection = manifest('worker-controller', 'Connection');
const monitor = manifest('pod-monitor', 'PodMonitor');
const scaler = manifest('keda', 'ScaledObject');
const CONTAINER = 'spec.template.spec.containers.0';
const LABELS = 'spec.template.metadata.labels';
const NAME = 'metadata.name';
const ports = at(deployment, `${CONTAINER}.ports`) as { name: string; containerPort: number }[];

const { cert, key } = selfSignedCertificate();
const API_KEY = { temporal: { 'api-key': 'a-key-of-temporal' } };
const MUTUAL_TLS = { 'temporal-tls': { 'tls.crt': cert, 'tls.key': key, 'ca.crt': cert } };

const folder = temporaryFolder();

/** The environment that Kubernetes makes for the worker; a secret that is not there sets nothing. */
function environmentOf(pod: unknown, secrets: object, injected: Record<string, string> = {}) {
  expect(at(pod, `${CONTAINER}.envFrom`)).toEqual([{ configMapRef: { name: at(settings, NAME) } }]);
  const keyFile = path.join(folder, 'key');
  writeFileSync(keyFile, 'an-admin-key-of-the-service');
  const own = (at(pod, `${CONTAINER}.env`) as object[]).map((variable) => {
    const from = at(variable, 'valueFrom.secretKeyRef') as { name: string; key: string } | undefined;
    const ofSecret = at(secrets, from?.name ?? '') as Record<string, string> | undefined;
    return [at(variable, 'name'), from === undefined ? at(variable, 'value') : ofSecret?.[from.key]];
  });
  const all = { ...(at(settings, 'data') as object), ...(Object.fromEntries(own) as object), ...injected };
  return { ...all, AGENT_API_KEY_FILE: keyFile };
}

/** What the Temporal Worker Controller adds to each container (1.8, `ApplyControllerPodSpecModifications`). */
const INJECTED = {
  TEMPORAL_ADDRESS: String(at(connection, 'spec.hostPort')),
  TEMPORAL_NAMESPACE: String(at(versioned, 'spec.workerOptions.temporalNamespace')),
  TEMPORAL_DEPLOYMENT_NAME: `agents/${String(at(versioned, 'metadata.name'))}`,
  TEMPORAL_WORKER_BUILD_ID: 'agent-follow-up-worker-0.3.0-1a2b',
};

describe('the environment of the pods', () => {
  it.each([
    ['without credentials', {}, { tls: undefined, apiKey: undefined }],
    ['with an API key', API_KEY, { tls: true, apiKey: 'a-key-of-temporal' }],
    ['with mutual TLS', MUTUAL_TLS, { tls: { clientCertPair: {}, serverRootCACertificate: {} } }],
  ])('is one with which the worker starts: %s', async (_, secrets, temporal) => {
    const { config } = await loadConfig(environmentOf(deployment, secrets));
    const address = at(settings, 'data.TEMPORAL_ADDRESS');
    expect(config.temporal).toMatchObject({ address, connection: temporal });
    expect(config.deploymentVersion).toBeUndefined();
    for (const name of ['health', 'metrics'] as const) {
      const port = ports.find((each) => each.name === name)?.containerPort;
      expect(config[name]).toMatchObject({ host: '0.0.0.0', port });
    }
  });

  it('is one with which the worker runs as a version where the Worker Controller adds what it adds', async () => {
    const { config } = await loadConfig(environmentOf(versioned, MUTUAL_TLS, INJECTED));
    expect(config.deploymentVersion).toEqual({
      deploymentName: INJECTED.TEMPORAL_DEPLOYMENT_NAME,
      buildId: INJECTED.TEMPORAL_WORKER_BUILD_ID,
    });
    const given = (at(versioned, `${CONTAINER}.env`) as { name: string }[]).map(({ name }) => name);
    expect(given.filter((name) => name in INJECTED || /CLIENT|API_KEY$/.test(name))).toEqual([]);
  });
});

describe('the manifests', () => {
  it('run the same pod with the Worker Controller as with a Deployment, but for the credentials', () => {
    const without = (pod: unknown) => {
      const copy = structuredClone(at(pod, 'spec.template'));
      const container = at(copy, 'spec.containers.0') as { env: { name: string }[] };
      container.env = container.env.filter(({ name }) => !name.startsWith('TEMPORAL_'));
      return copy;
    };
    expect(without(versioned)).toEqual(without(deployment));
  });

  it('all mean these pods', () => {
    const spread = at(deployment, 'spec.template.spec.topologySpreadConstraints') as object[];
    const selectors = [
      ...[deployment, budget, monitor].map((each) => at(each, 'spec.selector')),
      at(policy, 'spec.podSelector'),
      ...spread.map((each) => at(each, 'labelSelector')),
    ];
    expect(selectors).toEqual(Array(6).fill({ matchLabels: at(deployment, LABELS) }));
  });

  const scraped = at(monitor, 'spec.podMetricsEndpoints.0.port');
  const ofWorkflows = { metadata: expect.objectContaining({ taskQueue: DEFAULT_TASK_QUEUES.followUp }) };
  it.each<[string, unknown, unknown]>([
    [
      'have the service account of the pods',
      at(manifest('base', 'ServiceAccount'), 'metadata.name'),
      at(deployment, 'spec.template.spec.serviceAccountName'),
    ],
    ['have the connection', at(versioned, 'spec.workerOptions.connectionRef.name'), at(connection, NAME)],
    ['let Prometheus in at its port', at(policy, 'spec.ingress.0.ports.0.port'), scraped],
    ['have that port', ports.map(({ name }) => name), expect.arrayContaining([scraped])],
    ['leave Prometheus the label of the alerts', at(monitor, 'spec.podMetricsEndpoints.0.honorLabels'), true],
    [
      'let a node be drained while Temporal is down',
      at(budget, 'spec.unhealthyPodEvictionPolicy'),
      'AlwaysAllow',
    ],
    // A gate's workflow would wait on queues that have activities only.
    ['roll a version out without a gate', at(versioned, 'spec.rollout.gate'), undefined],
    ['scale the deployment', at(scaler, 'spec.scaleTargetRef.name'), at(deployment, NAME)],
    // Limits fill the others.
    [
      'scale by the workflow queue alone',
      at(scaler, 'spec.triggers'),
      [expect.objectContaining(ofWorkflows)],
    ],
  ])('%s', (_, actual, wanted) => {
    expect(actual).toEqual(wanted);
  });

  it.each([
    [200, 0],
    [503, 1],
  ])(
    'check the worker in Compose: where /readyz answers %s, the check ends with %s',
    async (status, code) => {
      const test = at(parse(read('compose.yaml')), 'services.worker.healthcheck.test');
      const [, program, ...args] = test as [string, string, ...string[]];
      const server = createServer(({ url }, response) =>
        response.writeHead(url === '/readyz' ? status : 404).end(),
      );
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const { port } = server.address() as AddressInfo;
      const there = args.map((arg) => arg.replace(':9465', `:${port}`));
      expect(await new Program(program, there).ended()).toMatchObject({ code });
      server.close();
    },
  );

  it.each([
    ['kubernetes/deployment.yaml', /terminationGracePeriodSeconds: (\d+)/],
    ['kubernetes/worker-controller.yaml', /terminationGracePeriodSeconds: (\d+)/],
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
