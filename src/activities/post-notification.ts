import { activityInfo } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { Webhook } from 'standardwebhooks';
import { type Dispatcher, Pool } from 'undici';
import { SecretError, type SecretSource } from '../agent-api/secret-source';
import { connectionOptions, sendHttpRequest } from '../agent-api/http-request';
import { readRetryAfter } from '../agent-api/retry-after';
import type { NotificationActivities } from '../contract/activities';
import { serverClock } from './attempt';

/** The receiver of notifications about follow-ups and batches, in the format of Standard Webhooks. */
export interface NotifyOptions {
  /**
   * The URL of the only receiver. The URL comes from the worker's settings, so that no caller can make a worker call another
   * address.
   */
  readonly url: string;
  /** The signing secret, or two secrets with a comma between them during a rotation. The source is read for each attempt. */
  readonly secrets: SecretSource;
}

const RESPONSE_TIMEOUT_MS = 10_000;
const TIMEOUTS = { timeoutMs: RESPONSE_TIMEOUT_MS, connectTimeoutMs: RESPONSE_TIMEOUT_MS };
/**
 * The maximum number of concurrent notifications, so that a receiver that hangs can't take the slots of the worker's other
 * activities.
 */
const MAX_CONCURRENT_POSTS = 10;
/**
 * The maximum interval of the activity's retry policy. The Temporal server never waits longer than this, even if a failure
 * requests it.
 */
const MAX_RETRY_DELAY_MS = 15 * 60_000;

const SECRETS_FORMAT =
  'one secret, or two with a comma between them, without white space: whsec_ and 24 to 64 bytes in base64';

const SECRETS_NAME = 'the notification secrets';

/** Returns the secrets without surrounding white space. @throws SecretError with a message that does not contain the secrets */
export function parseSecrets(text: string, name: string): string {
  const secrets = text.trim();
  const each = secrets.split(',');
  if (each.length <= 2 && each.every((secret) => /^whsec_[A-Za-z0-9+/]{32,86}={0,2}$/.test(secret)))
    return secrets;
  throw new SecretError(name, `must have ${SECRETS_FORMAT}`);
}

/** Creates one signer for each secret. @throws SecretError as {@link parseSecrets} does */
function createWebhooks(secrets: string): Webhook[] {
  return parseSecrets(secrets, SECRETS_NAME)
    .split(',')
    .map((secret) => new Webhook(secret));
}

/** Checks the options. @throws TypeError for an invalid URL, and SecretError for invalid secrets as {@link createWebhooks} does */
export async function checkNotifyOptions({ url, secrets }: NotifyOptions): Promise<void> {
  if (!/^https?:/i.test(url) || !URL.canParse(url))
    throw new TypeError('notify.url must be the http:// or https:// URL of a receiver');
  const { username, password } = new URL(url);
  if (username !== '' || password !== '')
    throw new TypeError(
      'notify.url must have no user name and no password; the receiver checks the signature',
    );
  createWebhooks(await secrets.current());
}

export function createPostNotification({
  url,
  secrets,
}: NotifyOptions): NotificationActivities['postNotification'] {
  let connections: Dispatcher | undefined;
  let postsInProgress = 0;
  return async (notification) => {
    const serverTime = serverClock();
    if (postsInProgress >= MAX_CONCURRENT_POSTS) {
      const category = ApplicationFailureCategory.BENIGN;
      throw notificationError(
        `this worker has reached its maximum of ${MAX_CONCURRENT_POSTS} concurrent notifications`,
        {
          nextRetryDelay: 5_000,
          category,
        },
      );
    }
    postsInProgress += 1;
    try {
      // Created with the first notification, because the URL is checked only when the worker runs (`checkNotifyOptions`).
      connections ??= new Pool(new URL(url).origin, connectionOptions(RESPONSE_TIMEOUT_MS));
      const request = signedRequest(url, await secrets.current(), serverTime(), JSON.stringify(notification));
      const result = await sendHttpRequest(connections, request, TIMEOUTS, String);
      // The failure's own message is not used, because it may show the URL, which may have a token.
      if (result.kind === 'no response')
        throw notificationError(`the receiver did not respond (${result.failure.label})`);
      const { status } = result;
      if (status >= 200 && status < 300) return;
      const message = `the receiver returned ${status}`;
      if (status === 410) throw ApplicationFailure.nonRetryable(message, 'ReceiverGone');
      const waitMs = readRetryAfter(result);
      if (waitMs === undefined) throw notificationError(message);
      throw notificationError(message, {
        nextRetryDelay: Math.min(Math.max(waitMs, 1_000), MAX_RETRY_DELAY_MS),
      });
    } finally {
      postsInProgress -= 1;
    }
  };
}

/**
 * Signs one attempt.
 *
 * @param now the time by the Temporal server's clock, because a receiver rejects a timestamp that is some minutes off, and the
 * worker's clock may be wrong
 */
function signedRequest(url: string, secrets: string, now: number, body: string): Dispatcher.DispatchOptions {
  const id = activityInfo().workflowExecution?.workflowId ?? '';
  const at = new Date(now);
  const signatures = createWebhooks(secrets).map((webhook) => webhook.sign(id, at, body));
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now / 1_000)),
    'webhook-signature': signatures.join(' '),
  };
  const { origin, pathname, search } = new URL(url);
  return { origin, path: pathname + search, method: 'POST', headers, body };
}

function notificationError(message: string, options: Parameters<typeof ApplicationFailure.create>[0] = {}) {
  return ApplicationFailure.create({ type: 'NotificationFailed', message, ...options });
}
