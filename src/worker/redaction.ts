import { redact } from '../agent-api/redact';

/**
 * Takes the known secrets out of texts. One redactor stands before everything the process shows: log records, messages
 * on stderr, the answers of the health server.
 */
export class Redactor {
  private readonly secrets = new Set<string>();

  /** Makes a secret known. A rotated key is added beside the old one, which may still stand in an error. */
  add(secret: string | undefined): void {
    if (secret !== undefined && secret !== '') this.secrets.add(secret);
  }

  /** `text` without any known secret in any of its usual encodings, and without whatever follows the word Bearer. */
  readonly text = (text: string): string => {
    return redact(text, this.secrets).replaceAll(/\b(Bearer\s+)[^\s"',;]+/gi, '$1[redacted]');
  };
}
