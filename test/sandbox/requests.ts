import { request } from 'undici';
import type { AgentJob } from '../../src/core/job';
import type { Sandbox } from '../../sandbox';

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The body as JSON; the type is what a good answer would be. */
  readonly job: () => AgentJob;
  /** The contract's error text. */
  readonly error: () => string;
}

export interface CallOptions {
  readonly method?: 'GET' | 'POST' | 'DELETE' | 'PUT';
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly signal?: AbortSignal;
}

/** One request on a connection of its own, with the sandbox's key unless told otherwise. */
export async function call(sandbox: Sandbox, path: string, options: CallOptions = {}): Promise<Reply> {
  const { method = 'GET', key = sandbox.apiKey, headers = {}, body, signal } = options;
  const response = await request(sandbox.baseUrl + path, {
    method,
    headers: { ...(key === null ? {} : { authorization: `Bearer ${key}` }), ...headers },
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
    reset: true,
  });
  const text = await response.body.text();
  return {
    status: response.statusCode,
    headers: response.headers,
    text,
    job: () => JSON.parse(text) as AgentJob,
    error: () => (JSON.parse(text) as { error: string }).error,
  };
}

export function jobPath(jobId: string, projectId = 'docs'): string {
  return `/v2/agent/${encodeURIComponent(projectId)}/job/${encodeURIComponent(jobId)}`;
}

export function read(sandbox: Sandbox, jobId: string, options: CallOptions = {}): Promise<Reply> {
  return call(sandbox, jobPath(jobId), options);
}

export function send(
  sandbox: Sandbox,
  jobId: string,
  prompt: string,
  options: CallOptions = {},
): Promise<Reply> {
  return call(sandbox, `${jobPath(jobId)}/message`, {
    ...options,
    method: 'POST',
    headers: { 'content-type': 'application/json', ...options.headers },
    body: JSON.stringify({ prompt }),
  });
}

/** The code with which a request failed (its name where it has none); 'answered NNN' when it did not. */
export async function failureCode(reply: Promise<Reply>): Promise<string> {
  try {
    return `answered ${(await reply).status}`;
  } catch (error) {
    const { code, name } = error as NodeJS.ErrnoException;
    return typeof code === 'string' ? code : name;
  }
}
