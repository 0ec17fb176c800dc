import { truncate } from '../contract/text';

/** The replacement of a text that contains the API key. */
export const WITHHELD = '[withheld: contains the API key]';

/** The minimum number of letters and digits in an API key, because an ordinary text may contain a shorter secret by chance. */
export const MIN_SECRET_CHARACTERS = 8;

/** The number of recent keys that are redacted. After a rotation, only responses to requests in progress can contain an old key. */
const REMEMBERED_KEYS = 16;

/** The maximum length of a returned text. */
const MAX_TEXT_CHARACTERS = 8_192;

/**
 * The length of the examined part of a text, because examining megabytes would block the event loop. The examined part is longer
 * than the returned part, so that a key across the end of the returned part is found. A key can also begin in the returned part and
 * end after the examined part, if its spelling is very long. If a text is longer than the examined part, the beginning of a key is
 * therefore enough to withhold the text.
 */
export const MAX_EXAMINED_CHARACTERS = 65_536;

/** The maximum number of nested encodings that are decoded. For example, JSON inside a URL inside HTML needs three. */
const MAX_DECODINGS = 4;

const BEARER = /\b(Bearer\s+)[^\s"',;]+/gi;

/** Whether a secret is long enough. A shorter secret is not redacted, because other texts would be withheld by chance. */
export function canBeRedacted(secret: string): boolean {
  return lettersAndDigits(secret).length >= MIN_SECRET_CHARACTERS;
}

export type Redact = (text: string) => string;

/**
 * Withholds every text that contains a fixed secret or a recently used key. A text contains a secret if the secret's letters and
 * digits appear in the text, verbatim or after decoding. Only letters and digits are compared.
 * docs/guarantees.md lists the encodings that are not decoded.
 */
export class Redactor {
  private keys: readonly string[] = [];
  private forms: readonly string[];

  constructor(
    private readonly secrets: readonly string[] = [],
    private readonly withheld = WITHHELD,
  ) {
    this.forms = secrets.flatMap(secretForms);
  }

  addKey(key: string): void {
    const isNew = !this.keys.includes(key);
    this.keys = [...this.keys.filter((each) => each !== key), key].slice(-REMEMBERED_KEYS);
    if (isNew) this.forms = [...this.secrets, ...this.keys].flatMap(secretForms);
  }

  /** Withholds a text that contains a secret. Otherwise, returns the start of the text, without any token after `Bearer`. */
  readonly redact: Redact = (text) => {
    const isCut = text.length > MAX_EXAMINED_CHARACTERS;
    const forms = isCut ? this.forms.map((form) => form.slice(0, MIN_SECRET_CHARACTERS)) : this.forms;
    if (containsForm(text.slice(0, MAX_EXAMINED_CHARACTERS), forms)) return this.withheld;
    return truncate(text, MAX_TEXT_CHARACTERS).replaceAll(BEARER, '$1[redacted]');
  };
}

function containsForm(text: string, forms: readonly string[]): boolean {
  let decoded = text;
  for (let decodings = 0; ; decodings += 1) {
    const characters = lettersAndDigits(decoded);
    if (forms.some((form) => characters.includes(form))) return true;
    const next = decodeEscapes(decoded);
    if (next === decoded || decodings === MAX_DECODINGS) return false;
    decoded = next;
  }
}

/** Returns a secret's letters and digits, verbatim and in base64. */
function secretForms(secret: string): readonly string[] {
  // The agent service's specification: a key is a prefix that callers may know, an underscore, and the secret body.
  const body = secret.slice(secret.indexOf('_') + 1);
  const part = [body, secret].find(canBeRedacted);
  return part === undefined ? [] : [part, ...base64Forms(part)].map(lettersAndDigits);
}

/** Base64 encodes three bytes at a time, so the same bytes have one of three forms, which depends on their position. */
function base64Forms(text: string): readonly string[] {
  return [0, 1, 2].map((bytesBefore) => {
    const bytes = Buffer.concat([Buffer.alloc(bytesBefore), Buffer.from(text)]);
    // The characters at both edges also encode bytes before and after the text.
    const firstCharacter = Math.ceil((bytesBefore * 8) / 6);
    return bytes.toString('base64').slice(firstCharacter, Math.floor((bytes.length * 8) / 6));
  });
}

function lettersAndDigits(text: string): string {
  return text.replace(/[^A-Za-z0-9]+/g, '');
}

/**
 * Matches one escape of HTML, JSON, JavaScript or a URL. HTML's names stand for punctuation, and `\n` stands for a line break. Any
 * other backslash is removed.
 */
const ESCAPE =
  /&#(\d{1,7});|&#x([0-9a-f]{1,6});|\\u\{([0-9a-f]{1,8})\}|[\\%]u([0-9a-f]{4})|(?:\\x|%)([0-9a-f]{2})|\\[nrtbfv]?|&[a-z]{2,8};/gi;

function decodeEscapes(text: string): string {
  return text.replace(
    ESCAPE,
    (_, decimal?: string, html?: string, braces?: string, unicode?: string, byte?: string) => {
      const hexadecimal = html ?? braces ?? unicode ?? byte ?? '';
      const code = decimal === undefined ? Number.parseInt(hexadecimal, 16) : Number(decimal);
      // A key has only ASCII characters, so any other character is removed.
      return code < 0x80 ? String.fromCharCode(code) : '';
    },
  );
}
