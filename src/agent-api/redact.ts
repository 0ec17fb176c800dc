import { percentEncode } from '../contract/workflow-id';

const REDACTED = '[key]';

/** How many rotated keys are remembered. Only an answer to a request in flight can still hold an earlier one. */
const REMEMBERED_KEYS = 16;

/**
 * `text` without any of the keys: verbatim, and in the forms in which a service, a proxy or an error might repeat them
 * (escaped in JSON, percent-encoded, in base64). Redact before cutting: half a key would not be found.
 */
export function redact(text: string, keys: Iterable<string>): string {
  const forms = [...keys].flatMap(formsOf).sort((a, b) => b.length - a.length);
  return forms.reduce((redacted, form) => redacted.replaceAll(form, REDACTED), text);
}

/** A shorter key belongs to a test setup, and would be found by chance in any link; a real one is random and longer. */
const MIN_SECRET_CHARACTERS = 16;

/** Every key that the client has used, so that what it says after a rotation shows the earlier key no more than this one. */
export class KeyRedactor {
  private readonly keys = new Set<string>();

  remember(key: string): void {
    this.keys.delete(key);
    this.keys.add(key);
    for (const oldest of this.keys) {
      if (this.keys.size <= REMEMBERED_KEYS) break;
      this.keys.delete(oldest);
    }
  }

  readonly redact = (text: string): string => redact(text, this.keys);

  /** A body before a job is read from it: a service that mirrors its request must not bring the key into a job. */
  readonly redactBody = (body: string): string => {
    const secrets = [...this.keys].filter((key) => key.length >= MIN_SECRET_CHARACTERS);
    return redact(body, secrets);
  };
}

function formsOf(key: string): string[] {
  if (key === '') return [];
  const bytes = Buffer.from(key);
  return [
    key,
    JSON.stringify(key).slice(1, -1),
    percentEncode(key),
    encodeURIComponent(key),
    ...[bytes, Buffer.from(`Bearer ${key}`)].flatMap((each) => [
      each.toString('base64'),
      each.toString('base64').replace(/=+$/, ''),
      each.toString('base64url'),
    ]),
  ];
}
