import type { AgentApi } from '../agent-api/client';
import type { JobAddress, JobAnswer } from '../core/activities';

/** Nobody has this job: a service answers 404 to a key that it knows, and 401 to one that it doesn't. */
const NOBODYS_JOB: JobAddress = { projectId: 'agent-follow-up-check', jobId: 'no-such-job' };

/** While something is wrong, one read in this time: reads may count against the service's limit. */
const ASK_AGAIN_MS = 60_000;

/** Troubles that only another key, URL, proxy or certificate heals, by label; what may heal by itself is left out. */
const BY_SETTINGS =
  /^(http (401|3\d\d)|not a job|no key|ENOTFOUND|PROXY_REFUSED|ERR_TLS_\w+|ERR_SSL_\w+|EPROTO|\w*CERT\w*|UNABLE_TO_\w+)$/;

/**
 * Whether the service takes the key, by one read of a job. A key that may read but not write can't be told before a message is
 * sent.
 *
 * @returns good also where there is no such job
 */
export async function checkKey(
  api: AgentApi,
  address: JobAddress,
): Promise<{ isGood: boolean; words: string }> {
  const answer = await api.getJob(address);
  if (answer.kind === 'job')
    return { isGood: true, words: `the key may read the job; it is ${answer.job.status}` };
  if (answer.httpStatus === 404)
    return { isGood: true, words: 'the service takes the key, and has no such job' };
  return { isGood: false, words: answer.message };
}

/**
 * Why no follow-up can succeed with these settings, or nothing, for `/readyz`: a wrong key or URL then shows before the first
 * follow-up. The service is asked once, and once a minute as long as something is wrong; that it is down is no reason.
 *
 * @param onTrouble gets each new reason
 */
export function keyCheck(
  api: AgentApi,
  onTrouble: (reason: string) => void,
): () => Promise<readonly string[]> {
  let asked:
    { readonly at: number; readonly reasons: Promise<readonly string[]>; isGood: boolean } | undefined;
  const ask = async (): Promise<readonly string[]> => {
    const reason = troubleOf(await api.getJob(NOBODYS_JOB));
    if (reason === undefined) return [];
    onTrouble(reason);
    return [reason];
  };
  return async () => {
    const now = performance.now();
    if (asked === undefined || (!asked.isGood && now - asked.at > ASK_AGAIN_MS)) {
      asked = { at: now, reasons: ask(), isGood: false };
    }
    const current = asked;
    const reasons = await current.reasons;
    current.isGood = reasons.length === 0;
    return reasons;
  };
}

function troubleOf(answer: JobAnswer): string | undefined {
  if (answer.kind === 'job' || !BY_SETTINGS.test(answer.label)) return undefined;
  return `the agent service can't be used with these settings: ${answer.message}`;
}
