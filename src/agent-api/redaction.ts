const REDACTED = '[key]';

/** Shorter texts would be found by chance. Keys have at least so many characters; other secrets that are shorter stay. */
export const MIN_SECRET_CHARACTERS = 8;

/** How many rotated keys are remembered. Only an answer to a request in flight can still hold an earlier one. */
const REMEMBERED_KEYS = 16;

/** Deeper nesting than JSON in JSON in a URL in HTML, each twice, is no accident. */
const MAX_LAYERS = 8;

/** Whatever follows Bearer is a credential. */
const BEARER = /\b(Bearer\s+)[^\s"',;]+/gi;

/** Removes secrets from texts: those that stay, and every key that was used, also after its rotation. */
export class Redactor {
  private readonly forms: readonly string[];
  private readonly keys = new Map<string, readonly string[]>();

  constructor(secrets: readonly string[] = []) {
    this.forms = secrets.flatMap(formsOf);
  }

  remember(key: string): void {
    const forms = this.keys.get(key) ?? formsOf(key);
    this.keys.delete(key);
    this.keys.set(key, forms);
    const [oldest = ''] = this.keys.keys();
    if (this.keys.size > REMEMBERED_KEYS) this.keys.delete(oldest);
  }

  /**
   * `text` without any known secret, however a service, a proxy or an error spells it: verbatim, in base64, and with any
   * of its characters escaped as in JSON, a URL or HTML, also one within the other (JSON in JSON). A text with a secret
   * behind escapes is returned with these decoded. Redact before cutting: half a key would not be found.
   */
  readonly text = (text: string): string => {
    // The longest first: one secret may be the beginning of another.
    const forms = [this.forms, ...this.keys.values()].flat().sort((a, b) => b.length - a.length);
    let shown = text;
    let layer = text;
    for (let depth = 0; depth <= MAX_LAYERS; depth += 1) {
      const hidden = forms.reduce((rest, form) => rest.replaceAll(form, REDACTED), layer);
      if (hidden !== layer) shown = hidden;
      layer = decoded(hidden);
      if (layer === hidden) break;
    }
    return shown.replaceAll(BEARER, '$1[redacted]');
  };
}

function formsOf(secret: string): string[] {
  if (secret.length < MIN_SECRET_CHARACTERS) return [];
  const encoded = [secret, `Bearer ${secret}`].flatMap((each) => {
    const bytes = Buffer.from(each);
    return [bytes.toString('base64').replace(/=+$/, ''), bytes.toString('base64url')];
  });
  // What a layer shows may have been decoded further than the secret itself, where the secret looks like an escape.
  const forms = new Set([secret, ...encoded].flatMap((form) => [form, fullyDecoded(form)]));
  return [...forms].filter((form) => form.length >= MIN_SECRET_CHARACTERS / 2);
}

function fullyDecoded(form: string): string {
  let text = form;
  for (let depth = 0; depth < MAX_LAYERS; depth += 1) text = decoded(text);
  return text;
}

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

/** The text with one layer of escapes less. */
function decoded(text: string): string {
  return text.replace(ESCAPE, (escape: string, ...groups: (string | undefined)[]) => {
    const [unicode, hex, escaped, percent, decimal, hexadecimal, name] = groups;
    if (escape === '+') return ' ';
    if (name !== undefined) return HTML_NAMES.get(name.toLowerCase()) ?? escape;
    const code = unicode ?? hex ?? percent ?? hexadecimal;
    if (code !== undefined) return oneCharacter(Number.parseInt(code, 16));
    return decimal === undefined ? (escaped ?? '') : oneCharacter(Number(decimal));
  });
}

/** Keys are ASCII; any other character only keeps its place. */
function oneCharacter(code: number): string {
  return code < 0x80 ? String.fromCharCode(code) : '\ufffd';
}
