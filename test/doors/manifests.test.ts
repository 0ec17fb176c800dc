import { spawn } from 'node:child_process';
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
import { formatListenAddress, VARIABLES } from '../../src/worker/variables';
import { selfSignedCertificate } from '../agent-api/self-signed-certificate';
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
const ports = at(deployment, `${CONTAINER}.ports`) as { name: string; containerPort: number }[];

const { cert, key } = selfSignedCertificate();
const API_KEY = { temporal: { 'api-key': 'a-key-of-temporal' } };
const MUTUAL_TLS = { 'temporal-tls': { 'tls.crt': cert, 'tls.key': key, 'ca.crt': cert } };

const folder = temporaryFolder();

/** The environment that Kubernetes makes for the worker; a secret that is not there sets nothing. */
function environmentOf(pod: unknown, secrets: object, injected: Record<string, string> = {}) {
  expect(at(pod, `${CONTAINER}.envFrom`)).toEqual([
    { configMapRef: { name: at(settings, 'metadata.name') } },
  ]);
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
    const listening = [config.health, config.metrics].map(
      (each) => each !== 'off' && formatListenAddress(each),
    );
    const named = (name: string) => ports.find((each) => each.name === name)?.containerPort;
    expect(listening).toEqual(['health', 'metrics'].map((name) => `0.0.0.0:${named(name)}`));
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
      const env = (at(pod, `${CONTAINER}.env`) as { name: string }[]).filter(
        ({ name }) => !name.startsWith('TEMPORAL_'),
      );
      const container = { ...(at(pod, CONTAINER) as object), env };
      const spec = { ...(at(pod, 'spec.template.spec') as object), containers: [container] };
      return { ...(at(pod, 'spec.template') as object), spec };
    };
    expect(without(versioned)).toEqual(without(deployment));
  });

  it('all mean these pods', () => {
    const spread = at(deployment, 'spec.template.spec.topologySpreadConstraints') as object[];
    const selectors = [
      at(deployment, 'spec.selector'),
      at(budget, 'spec.selector'),
      at(policy, 'spec.podSelector'),
      at(monitor, 'spec.selector'),
      ...spread.map((each) => at(each, 'labelSelector')),
    ];
    expect(selectors).toEqual(Array(6).fill({ matchLabels: at(deployment, LABELS) }));
    const account = at(deployment, 'spec.template.spec.serviceAccountName');
    expect(at(manifest('base', 'ServiceAccount'), 'metadata.name')).toBe(account);
    expect(at(versioned, 'spec.workerOptions.connectionRef.name')).toBe(at(connection, 'metadata.name'));
  });

  it('let Prometheus in at the port that it scrapes, and leave it the label `namespace`, by which alerts are', () => {
    const scraped = at(monitor, 'spec.podMetricsEndpoints.0');
    expect(at(policy, 'spec.ingress.0.ports')).toMatchObject([{ port: at(scraped, 'port') }]);
    expect(ports.map(({ name }) => name)).toContain(at(scraped, 'port'));
    expect(at(scraped, 'honorLabels')).toBe(true);
  });

  it('let a node be drained while Temporal is down and no worker is ready', () => {
    expect(at(budget, 'spec.unhealthyPodEvictionPolicy')).toBe('AlwaysAllow');
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
      expect((await once(spawn(program, there), 'exit'))[0]).toBe(code);
      server.close();
    },
  );

  it('roll a version out without a gate, whose workflow would wait on queues that have activities only', () => {
    expect(Object.keys(at(versioned, 'spec.rollout') as object).sort()).toEqual(['steps', 'strategy']);
  });

  it('scale by the workflow queue alone, because limits fill the others', () => {
    expect(at(scaler, 'spec.scaleTargetRef.name')).toBe(at(deployment, 'metadata.name'));
    expect(at(scaler, 'spec.triggers')).toMatchObject([
      { metadata: { taskQueue: DEFAULT_TASK_QUEUES.followUp } },
    ]);
  });

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
