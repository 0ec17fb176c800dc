import { activityInfo } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { Webhook } from 'standardwebhooks';
import { ApiKeyError, type ApiKeySource } from '../agent-api/api-key';
import { failureFromError } from '../agent-api/error-failures';
import { parseRetryAfter } from '../agent-api/retry-after';
import type { NotificationActivities } from '../contract/activities';

/** Where the ends of follow-ups and batches are told, as Standard Webhooks. */
export interface NotifyOptions {
  /** One endpoint for all, from the worker's own settings: no caller can make a worker ask another address. */
  readonly url: string;
  /** One secret, or two with a comma between them while one is rotated; read for each attempt. See {@link webhooksOf}. */
  readonly secrets: ApiKeySource;
}

const ANSWER_LIMIT_MS = 10_000;
/** A receiver that hangs must not take the slots of the worker's other questions. */
const AT_ONCE = 10;
/** The maximum interval of the activity's retry policy: the server waits no longer, whatever a failure asks for. */
const LONGEST_WAIT_MS = 15 * 60_000;

export const SECRETS =
  'one secret, or two with a comma between them, without white space: whsec_ and 24 to 64 bytes in base64';

/** @throws ApiKeyError that shows nothing of the secrets */
export function webhooksOf(secrets: string): Webhook[] {
  const each = secrets.split(',');
  if (each.length <= 2 && each.every((secret) => /^whsec_[A-Za-z0-9+/]{32,86}={0,2}$/.test(secret)))
    return each.map((secret) => new Webhook(secret));
  throw new ApiKeyError('the secret file of notices', `must hold ${SECRETS}`);
}

/** @throws TypeError for a URL that can't be one; ApiKeyError for secrets as {@link webhooksOf} does */
export async function checkNotify({ url, secrets }: NotifyOptions): Promise<void> {
  if (!/^https?:/i.test(url) || !URL.canParse(url))
    throw new TypeError('notify.url must be the http:// or https:// URL of a receiver');
  webhooksOf(await secrets.current());
}

export function createPostNotification({
  url,
  secrets,
}: NotifyOptions): NotificationActivities['postNotification'] {
  let underWay = 0;
  return async (notice) => {
    if (underWay >= AT_ONCE) {
      const category = ApplicationFailureCategory.BENIGN;
      throw again('this worker tells as many at once as it may', { nextRetryDelay: 5_000, category });
    }
    underWay += 1;
    try {
      const { status, headers } = await post(url, await secrets.current(), JSON.stringify(notice));
      if (status >= 200 && status < 300) return;
      const message = `the receiver answered ${status}`;
      if (status === 410) throw ApplicationFailure.nonRetryable(message, 'ReceiverGone');
      const [wait, date] = ['retry-after', 'date'].map((name) => headers.get(name) ?? undefined);
      const waitMs = parseRetryAfter(wait, date);
      if (waitMs === undefined) throw again(message);
      throw again(message, { nextRetryDelay: Math.min(Math.max(waitMs, 1_000), LONGEST_WAIT_MS) });
    } finally {
      underWay -= 1;
    }
  };
}

async function post(url: string, secrets: string, body: string) {
  const id = activityInfo().workflowExecution?.workflowId ?? '';
  const at = new Date();
  const signatures = webhooksOf(secrets).map((webhook) => webhook.sign(id, at, body));
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': signatures.join(' '),
  };
  try {
    const signal = AbortSignal.timeout(ANSWER_LIMIT_MS);
    const response = await fetch(url, { method: 'POST', redirect: 'manual', signal, headers, body });
    await response.body?.cancel();
    return response;
  } catch (error) {
    // Its own words may show the URL, which may hold a token.
    throw again(`no answer from the receiver (${failureFromError(error).label})`);
  }
}

function again(message: string, options: Parameters<typeof ApplicationFailure.create>[0] = {}) {
  return ApplicationFailure.create({ type: 'NotificationFailed', message, ...options });
}
