import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, jest } from '@jest/globals';
import { keyFromText } from '../../src/agent-api/api-key';
import { type AgentApi, type AgentApiOptions, createAgentApi } from '../../src/agent-api/client';
import { JOB as BARE_JOB } from '../harness/fixtures';
import { MisbehavingServer } from './misbehaving-server';

/** With characters that are spelled in many ways. */
export const KEY = 'agnt_9f/8e+7d&6c=5b4a3928';

export const JOB_KEY = { projectId: 'docs', jobId: 'job-1' };
export const MESSAGE = { ...JOB_KEY, prompt: 'Please add a changelog entry.' };

/** The job as the service answers it after a message. */
export const JOB = { ...BARE_JOB, id: 'job-1' };

/** The time limit of an exchange. No test waits for it: where it is to pass, the timers are held. */
export const TIMEOUT_MS = 60_000;

/** Lets the time limit pass. The timers must be held. */
export function passTimeout(): void {
  jest.advanceTimersByTime(TIMEOUT_MS);
}

/** The same, as soon as the client has read a first piece of an answer's body. */
export function passTimeoutInBody(): void {
  const channel = 'undici:request:bodyChunkReceived';
  const received = () => {
    unsubscribe(channel, received);
    // The piece is handed on right after it was announced.
    setImmediate(passTimeout);
  };
  subscribe(channel, received);
}

/** A server for each test of a file, and clients of it, which are closed after it. */
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
