import type { AgentJob } from '../src/core/job';
import type { Operation } from './fault-row';
import type { JobKey, Jobs } from './jobs';
import type { KeyState } from './keys';
import type { MessageBody } from './message-body';
import type { RateLimit } from './rate-limit';
import { type Answer, errorAnswer } from './reaction';
import type { Turn, TurnPlan } from './turn';

/** What the contract makes of a request: a refusal in the service's words, or the job. */
export type Handled =
  | { readonly kind: 'refused'; readonly answer: Answer }
  | { readonly kind: 'job'; readonly job: AgentJob; readonly turn: Turn | null };

export interface AgentRequest extends JobKey {
  readonly key: KeyState;
  readonly method: string;
  readonly operation: Operation;
  /** Null for a read of the job. */
  readonly message: MessageBody | null;
}

export interface AgentServiceParts {
  readonly jobs: Jobs;
  readonly rateLimit: RateLimit;
  /** Whether a message to an archived job is taken and brings it back to life. */
  readonly archivedJobs: 'refuse' | 'accept';
}

/** The method of each operation. */
const METHODS = { get: 'GET', message: 'POST' } as const;

/**
 * The contract without wire and faults: who may, what is well-formed, what exists, and only then the message.
 *
 * What the specification leaves open is decided thus: a success is 200; a message to a job in any status but `archived`
 * is taken, and the returned job is already `active`; a message to an archived job is a 400.
 */
export class AgentService {
  constructor(private readonly parts: AgentServiceParts) {}

  /** `plan` is asked, once the message is taken, for what replaces parts of the turn that was planned for it. */
  handle(request: AgentRequest, plan: () => TurnPlan = () => ({})): Handled {
    const refusal = this.refusal(request);
    if (refusal !== undefined) return { kind: 'refused', answer: refusal };
    const life = this.parts.jobs.find(request);
    if (life === undefined) return refuse(404, 'job not found');
    if (request.message === null) return { kind: 'job', job: life.read(), turn: null };
    if ('problem' in request.message) return refuse(request.message.status, request.message.problem);
    if (this.parts.archivedJobs === 'refuse' && life.job().status === 'archived') {
      return refuse(400, 'the job is archived and takes no more messages');
    }
    const wait = this.parts.rateLimit.take(request.projectId);
    if (wait !== undefined) {
      return refuse(429, 'too many messages to this project within the hour', {
        'retry-after': String(wait.retryAfterSeconds),
      });
    }
    const turn = life.receive(request.message.prompt, plan());
    return { kind: 'job', job: life.job(), turn };
  }

  private refusal({ key, method, operation }: AgentRequest): Answer | undefined {
    const allowed = METHODS[operation];
    if (method !== allowed) return errorAnswer(405, `this path takes ${allowed} only`, { allow: allowed });
    if (key === 'none' || key === 'unknown' || key === 'expired') {
      const words = key === 'none' ? 'no API key: send Authorization: Bearer <key>' : `the API key is ${key}`;
      return errorAnswer(401, words, { 'www-authenticate': 'Bearer' });
    }
    return operation === 'message' && key !== 'write'
      ? errorAnswer(403, 'this API key may only read')
      : undefined;
  }
}

function refuse(status: number, words: string, headers: Record<string, string> = {}): Handled {
  return { kind: 'refused', answer: errorAnswer(status, words, headers) };
}
