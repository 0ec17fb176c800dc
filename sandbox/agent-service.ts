import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Operation } from './faults';
import { parseWithSchema, InputError, MAX_BODY_BYTES, parseJson } from './input';
import type { JobLife, TurnPlan } from './job-life';
import type { JobKey, Jobs } from './jobs';
import { errorResponse, type Reaction } from './reaction';

export type KeyAccess = 'write' | 'read-only';

/** The access that a request's `Authorization` header gives. */
export type KeyState = KeyAccess | 'expired' | 'unknown' | 'none';

export interface AgentRequest extends JobKey {
  readonly operation: Operation;
  readonly method: string;
  readonly key: KeyState;
  /** The message, or the reason why the body is invalid. Null for a read of the job. */
  readonly message: Message | null;
}

export type Message = { readonly prompt: string } | { readonly status: 400 | 413; readonly problem: string };

/** The result of a request by the contract: a rejection with an error text, or the job. */
export type HandledRequest =
  | { readonly rejection: Reaction }
  /** `turn` is the number of the turn that the message added. For a read, `turn` is null. */
  | { readonly rejection: null; readonly life: JobLife; readonly turn: number | null };

const HOUR_MS = 3_600_000;

/** The method of each operation. */
const METHODS = { get: 'GET', message: 'POST' } as const;

/**
 * The contract of the agent service, without HTTP and faults. A request is checked in this order: method, key, job, body, status of the
 * job, rate limit.
 *
 * The specification leaves some points open. In the sandbox, a success is 200. A message to a job with any status except `archived` is
 * accepted, and the returned job is already `active`. A message to an archived job receives 400.
 */
export class AgentService {
  private readonly keys = new Map<string, KeyAccess | 'expired'>();
  /** For each project, the times of the messages that were accepted within the last hour. */
  private readonly messageTimes = new Map<string, number[]>();

  /**
   * @param messagesPerHour the rate limit of each project, or null for no limit
   * @param now returns the time in epoch milliseconds
   */
  constructor(
    private readonly jobs: Jobs,
    private readonly messagesPerHour: number | null,
    private readonly now: () => number,
  ) {}

  /** Creates a key: the prefix `sandbox`, an underscore, and 144 random bits. */
  createKey(access: KeyAccess): string {
    const key = `sandbox_${randomBytes(18).toString('hex')}`;
    this.keys.set(key, access);
    return key;
  }

  /** Makes every key expire. */
  expireKeys(): void {
    for (const key of this.keys.keys()) this.keys.set(key, 'expired');
  }

  keyState(authorization = ''): KeyState {
    // The scheme is case-insensitive (RFC 9110, section 11.1).
    const key = /^bearer +(\S+)$/i.exec(authorization)?.[1];
    return key === undefined ? 'none' : (this.keys.get(key) ?? 'unknown');
  }

  /** Handles a request. @param plan returns changes of the message's turn; it is called after the message is accepted */
  handle(request: AgentRequest, plan: () => TurnPlan): HandledRequest {
    const { operation, message, key } = request;
    const allowed = METHODS[operation];
    if (request.method !== allowed)
      return rejectRequest(405, `this path accepts only ${allowed}`, { allow: allowed });
    if (key !== 'write' && key !== 'read-only') {
      const error = key === 'none' ? 'the request has no API key' : `the API key is ${key}`;
      return rejectRequest(401, error, { 'www-authenticate': 'Bearer' });
    }
    if (operation === 'message' && key !== 'write') return rejectRequest(403, 'this API key may only read');
    const life = this.jobs.find(request);
    if (life === undefined) return rejectRequest(404, 'job not found');
    if (message === null) return { rejection: null, life, turn: null };
    if ('problem' in message) return rejectRequest(message.status, message.problem);
    if (life.job().status === 'archived')
      return rejectRequest(400, 'the job is archived and accepts no more messages');
    const waitMs = this.countMessage(request.projectId);
    if (waitMs > 0) {
      const headers = { 'retry-after': String(Math.ceil(waitMs / 1_000)) };
      return rejectRequest(429, 'too many messages to this project within one hour', headers);
    }
    return { rejection: null, life, turn: life.receive(message.prompt, plan()) };
  }

  /** Counts a message and returns 0. Over the rate limit, counts nothing and returns the wait for the next message in milliseconds. */
  private countMessage(projectId: string): number {
    if (this.messagesPerHour === null) return 0;
    const now = this.now();
    const recent = (this.messageTimes.get(projectId) ?? []).filter((at) => at > now - HOUR_MS);
    this.messageTimes.set(projectId, recent);
    const [oldest = now] = recent;
    if (recent.length >= this.messagesPerHour) return oldest + HOUR_MS - now;
    recent.push(now);
    return 0;
  }
}

const messageSchema = z.object({ prompt: z.string().min(1) });

/** Reads the message from a body. @param body null if the body was too large */
export function readMessage(contentType: string | undefined, body: Buffer | null): Message {
  if (body === null) return { status: 413, problem: `the body is larger than ${MAX_BODY_BYTES} bytes` };
  if (!/^application\/json *(;|$)/i.test(contentType ?? '')) {
    return { status: 400, problem: 'the content type must be application/json' };
  }
  try {
    return parseWithSchema(messageSchema, parseJson(body));
  } catch (error) {
    if (error instanceof InputError) return { status: 400, problem: `the body: ${error.message}` };
    throw error;
  }
}

function rejectRequest(status: number, error: string, headers: Record<string, string> = {}): HandledRequest {
  return { rejection: errorResponse(status, error, headers) };
}
