import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, jest } from '@jest/globals';
import { keyFromText } from '../../src/agent-api/api-key';
import { type AgentApi, type AgentApiOptions, createAgentApi } from '../../src/agent-api/client';
import { JOB as BARE_JOB } from '../harness/fixtures';
import { MisbehavingServer } from './misbehaving-server';

/** An API key with characters that have many encodings. */
export const KEY = 'agnt_9f/8e+7d&6c=5b4a3928';

export const JOB_KEY = { projectId: 'docs', jobId: 'job-1' };
export const MESSAGE = { ...JOB_KEY, prompt: 'Please add a changelog entry.' };

/** The job that the agent service returns after a message. */
export const JOB = { ...BARE_JOB, id: 'job-1' };

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
