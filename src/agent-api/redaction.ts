const REDACTED = '[key]';

/**
 * A shorter text would be found by chance in links and messages, and garble them. Keys of the agent service must be at
 * least this long; shorter secrets of other kinds are left alone.
 */
export const MIN_SECRET_CHARACTERS = 8;

/** How many rotated keys are remembered. Only an answer to a request in flight can still hold an earlier one. */
const REMEMBERED_KEYS = 16;

/**
 * `text` without any of the secrets, however a service, a proxy or an error spells them: verbatim, in base64, and with any
 * of their characters escaped as in JSON, a URL or HTML, also one within the other (JSON in JSON). Redact before
 * cutting: half a key would not be found.
 */
export function redact(text: string, secrets: Iterable<string>): string {
  const forms = [...secrets].flatMap(formsOf);
  if (forms.length === 0) return text;
  const found: Range[] = [];
  let layer: Layer | undefined = { text, starts: undefined };
  for (let depth = 0; layer !== undefined && depth <= MAX_LAYERS; depth += 1) {
    for (const form of forms) found.push(...occurrences(form, layer, text.length));
    layer = decoded(layer, text.length);
  }
  return replaced(text, found);
}

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
}

/** Every log record asks for the same few. */
const knownForms = new Map<string, readonly string[]>();

function formsOf(secret: string): readonly string[] {
  const known = knownForms.get(secret);
  if (known !== undefined) return known;
  if (knownForms.size > 4 * REMEMBERED_KEYS) knownForms.clear();
  const forms = makeForms(secret);
  knownForms.set(secret, forms);
  return forms;
}

function makeForms(secret: string): string[] {
  if (secret.length < MIN_SECRET_CHARACTERS) return [];
  const encoded = [secret, `Bearer ${secret}`].flatMap((each) => {
    const bytes = Buffer.from(each);
    return [bytes.toString('base64'), unpadded(bytes.toString('base64')), bytes.toString('base64url')];
  });
  // What a layer shows may have been decoded further than the secret itself, where the secret looks like an escape.
  const forms = new Set([secret, ...encoded].flatMap((form) => [form, fullyDecoded(form)]));
  return [...forms].filter((form) => form.length >= MIN_SECRET_CHARACTERS / 2);
}

function unpadded(base64: string): string {
  return base64.replace(/=+$/, '');
}

type Range = readonly [start: number, end: number];

/** A text with some layers of escapes removed. */
interface Layer {
  readonly text: string;
  /** Where each of its characters begins in the original text; undefined for the original. */
  readonly starts: Int32Array | undefined;
}

/** Deeper nesting than JSON in JSON in a URL in HTML, each twice, is no accident. */
const MAX_LAYERS = 8;

/** One escape of JSON or JavaScript (any number of backslashes), of a URL, or of HTML. A form writes a space as `+`. */
const ESCAPE =
  /\\+(?:u([0-9a-f]{4})|x([0-9a-f]{2})|([^\\]))?|%([0-9a-f]{2})|&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,8}));|\+/gi;

/** HTML's names of the visible ASCII characters that are no letters or digits. */
const HTML_NAMES = new Map(
  [
    ...(
      'excl! quot" num# dollar$ percnt% amp& apos\' lpar( rpar) ast* plus+ comma, period. sol/ colon: semi; lt< equals= ' +
      'gt> quest? commat@ lsqb[ lbrack[ bsol\\ rsqb] rbrack] hat^ lowbar_ grave` lcub{ lbrace{ verbar| vert| rcub} rbrace}'
    ).matchAll(/([a-z]+)(\S)/g),
  ].map(([, name, character]) => [name, character]),
);

/** The text with one layer of escapes less; undefined where it has none. Every escape becomes at most one character. */
function decoded({ text, starts }: Layer, length: number): Layer | undefined {
  const pieces: string[] = [];
  const next = new Int32Array(text.length);
  let size = 0;
  let read = 0;
  const startAt = (index: number) => (starts === undefined ? index : (starts[index] ?? length));
  const copyUntil = (end: number) => {
    pieces.push(text.slice(read, end));
    for (; read < end; read += 1) next[size++] = startAt(read);
  };
  for (const match of text.matchAll(ESCAPE)) {
    const character = unescaped(match);
    if (character === match[0]) continue;
    copyUntil(match.index);
    pieces.push(character);
    if (character !== '') next[size++] = startAt(match.index);
    read = match.index + match[0].length;
  }
  if (read === 0) return undefined;
  copyUntil(text.length);
  return { text: pieces.join(''), starts: next.subarray(0, size) };
}

function unescaped(match: RegExpMatchArray): string {
  const [escape, unicode, hex, escaped, percent, decimal, hexadecimal, name] = match;
  if (escape === '+') return ' ';
  if (name !== undefined) return HTML_NAMES.get(name.toLowerCase()) ?? escape;
  const code = unicode ?? hex ?? percent ?? hexadecimal;
  if (code !== undefined) return oneCharacter(Number.parseInt(code, 16));
  return decimal === undefined ? (escaped ?? '') : oneCharacter(Number(decimal));
}

/** Keys are ASCII; any other character only keeps its place. */
function oneCharacter(code: number): string {
  return code < 0x80 ? String.fromCharCode(code) : '\ufffd';
}

function fullyDecoded(form: string): string {
  let layer: Layer = { text: form, starts: undefined };
  for (let depth = 0; depth < MAX_LAYERS; depth += 1) {
    const next = decoded(layer, form.length);
    if (next === undefined) break;
    layer = next;
  }
  return layer.text;
}

/** Where a form stands in a layer, as places of the original text. */
function occurrences(form: string, { text, starts }: Layer, length: number): Range[] {
  const found: Range[] = [];
  for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + form.length)) {
    const end = at + form.length;
    found.push(starts === undefined ? [at, end] : [starts[at] ?? 0, starts[end] ?? length]);
  }
  return found;
}

function replaced(text: string, found: readonly Range[]): string {
  const pieces: string[] = [];
  let read = 0;
  for (const [start, end] of [...found].sort(([a], [b]) => a - b)) {
    if (start >= read) pieces.push(text.slice(read, start), REDACTED);
    read = Math.max(read, end);
  }
  return pieces.length === 0 ? text : pieces.join('') + text.slice(read);
}
