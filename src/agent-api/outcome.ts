import type { JobAnswer, PostOutcome, SendTrouble } from '../contract/activities';
import type { AgentJob } from '../contract/job';
import { errorFacts } from './error-facts';
import type { Answer, Exchange } from './exchange';
import { readJob } from './job-schema';
import { parseRetryAfter } from './retry-after';
import { bodyTrouble, failureTrouble, statusTrouble, type Telling } from './trouble';
import { proofOfFailure, proofOfStatus } from './verdict';

/** What one GET of the job brought. */
export function jobAnswer(exchange: Exchange, jobId: string, telling: Telling, nowMs: number): JobAnswer {
  if (exchange.kind === 'no answer') return { kind: 'trouble', ...failureTrouble(exchange, telling) };
  const read = readAnswer(exchange, jobId, telling);
  return 'job' in read
    ? { kind: 'job', job: read.job }
    : { kind: 'trouble', ...read.trouble, ...retryAfter(exchange, nowMs) };
}

/** What one POST of the message proved. */
export function sendOutcome(exchange: Exchange, jobId: string, telling: Telling, nowMs: number): PostOutcome {
  if (exchange.kind === 'no answer') {
    const { reason, started } = exchange;
    const facts = reason.by === 'error' ? errorFacts(reason.error) : [];
    const proof = proofOfFailure(started, facts);
    const trouble = failureTrouble(exchange, telling);
    return proof.verdict === 'unknown' ? { ...proof, ...trouble } : { ...proof, answered: false, ...trouble };
  }
  const read = readAnswer(exchange, jobId, telling);
  if ('job' in read) return { verdict: 'accepted', job: read.job };
  const proof = proofOfStatus(exchange.status);
  if (proof !== 'not processed') return { verdict: proof, ...read.trouble };
  const hint = retryAfter(exchange, nowMs);
  return { verdict: 'not-sent', repeatable: true, answered: true, ...hint, ...read.trouble };
}

/** The job that an answer holds, or what is wrong with it. A broken body doesn't matter where the status or a whole job stands. */
function readAnswer(
  answer: Answer,
  jobId: string,
  telling: Telling,
): { job: AgentJob } | { trouble: SendTrouble } {
  if (answer.status < 200 || answer.status >= 300) return { trouble: statusTrouble(answer, telling) };
  const job = readJob(telling.redactBody(answer.body));
  return job?.id === jobId ? { job } : { trouble: bodyTrouble(answer, job?.id, telling) };
}

function retryAfter(answer: Answer, nowMs: number): { retryAfterMs?: number } {
  const retryAfterMs = parseRetryAfter(answer.headers['retry-after'], nowMs);
  return retryAfterMs === undefined ? {} : { retryAfterMs };
}
