import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeAll, beforeEach, jest } from '@jest/globals';
import { request } from 'undici';
import { keyFromText } from '../../src/agent-api/secret-source';
import { type AgentApi, type AgentApiOptions, createAgentApi } from '../../src/agent-api/client';
import { recordMetric } from '../../src/contract/metrics';
import { JOB as BARE_JOB } from '../harness/fixtures';
import { MisbehavingServer, respondWith } from './misbehaving-server';

/** An API key with characters that have many encodings. */
export const KEY = 'agnt_9f/8e+7d&6c=5b4a3928';

export const JOB_KEY = { projectId: 'docs', jobId: 'job-1' };
export const MESSAGE = { ...JOB_KEY, prompt: 'Please add a changelog entry.' };

/** The job that the agent service returns after a message. */
export const JOB = { ...BARE_JOB, id: 'job-1' };

/** Returns the value of the label `result` with which the requests metric counts a failure. */
export function resultLabel(label: string): string | undefined {
  let shown: Readonly<Record<string, string>> = {};
  const createCounter = () => ({ add: (_: number, labels: typeof shown) => (shown = labels) });
  recordMetric({ createCounter } as never, 'requests', 1, { operation: 'send', result: label });
  return shown.result;
}

/** The timeout of one HTTP request. No test waits this long: a test of the timeout uses fake timers (`holdTimers`). */
export const TIMEOUT_MS = 60_000;

/** Advances the fake timers by {@link TIMEOUT_MS}. The test must have called `holdTimers`. */
export function passTimeout(): void {
  jest.advanceTimersByTime(TIMEOUT_MS);
}

/** Calls {@link passTimeout} as soon as the client has read the first part of a response body. */
export function passTimeoutInBody(): void {
  const channel = 'undici:request:bodyChunkReceived';
  const received = () => {
    unsubscribe(channel, received);
    // undici announces the part right before it passes the part to the client.
    setImmediate(passTimeout);
  };
  subscribe(channel, received);
}

/** Starts a server for each test of a file, and closes the clients of the server after the test. */
export class AgentApiTest {
  server!: MisbehavingServer;
  private readonly clients: AgentApi[] = [];

  constructor() {
    // undici creates its only timer with its first request, and never replaces this timer. If a test held the timers at that time,
    // undici's timeouts would never end in the later tests of the file.
    beforeAll(async () => {
      const server = await MisbehavingServer.start();
      server.onRequest = respondWith(200, JOB, { connection: 'close' });
      const { body } = await request(server.url, { reset: true });
      await body.dump();
    });
    beforeEach(async () => {
      this.server = await MisbehavingServer.start();
    });
    afterEach(async () => {
      jest.useRealTimers();
      await Promise.all(this.clients.splice(0).map((client) => client.close()));
    });
  }

  client(options: Partial<AgentApiOptions> = {}): AgentApi {
    const client = createAgentApi({
      baseUrl: this.server.url,
      apiKey: keyFromText(KEY),
      timeoutMs: TIMEOUT_MS,
      ...options,
    });
    this.clients.push(client);
    return client;
  }
}
