const REDACTED = '[key]';

/** Shorter texts would be found by chance; no key is shorter. */
export const MIN_SECRET_CHARACTERS = 8;

/** Only an answer to a request in flight can still hold one from before a rotation. */
const REMEMBERED_KEYS = 16;

/** JSON in JSON in a URL in HTML, each twice. */
const MAX_LAYERS = 8;

const BEARER = /\b(Bearer\s+)[^\s"',;]+/gi;

export type Redact = Pick<Redactor, 'text' | 'field'>;

/** Removes secrets from texts: those that stay, and keys that were used, also after their rotation. */
export class Redactor {
  private keys: readonly string[] = [];
  private forms: Forms;

  constructor(private readonly secrets: readonly string[] = []) {
    this.forms = formsOf(secrets);
  }

  remember(key: string): void {
    const isNew = !this.keys.includes(key);
    this.keys = [...this.keys.filter((each) => each !== key), key].slice(-REMEMBERED_KEYS);
    if (isNew) this.forms = formsOf([...this.secrets, ...this.keys]);
  }

  /** A message, without any known secret and without whatever follows Bearer. */
  readonly text = (text: string): string => this.field(text).replaceAll(BEARER, '$1[redacted]');

  /**
   * `text` without any known secret: verbatim, in base64, with any of its characters escaped as in JSON, a URL, HTML or a mail,
   * one within the other, or with invisible characters between. Where one is behind escapes, these are decoded. Redact before
   * cutting: half a key would not be found.
   */
  readonly field = (text: string): string =>
    this.forms.reduce((shown, [escape, forms]) => withoutForms(shown, forms, escape), text);
}

function withoutForms(text: string, forms: readonly string[], escape: RegExp): string {
  let shown = text;
  let layer = text;
  for (let depth = 0; depth <= MAX_LAYERS; depth += 1) {
    const hidden = forms.reduce((rest, form) => rest.replaceAll(form, REDACTED), layer);
    if (hidden !== layer) shown = hidden;
    layer = decoded(hidden, escape);
    if (layer === hidden) break;
  }
  return shown;
}

/** How secrets may stand in a layer, for each pass. */
type Forms = readonly (readonly [escape: RegExp, forms: readonly string[]])[];

function formsOf(secrets: readonly string[]): Forms {
  return PASSES.map(([secretOf, escape]) => {
    const parts = secrets.map(secretOf).filter((part) => part.length >= MIN_SECRET_CHARACTERS);
    const encoded = parts
      .flatMap((part) => [Buffer.from(part), Buffer.from(`Bearer ${part}`)])
      .flatMap((bytes) => [bytes.toString('base64').replace(/=+$/, ''), bytes.toString('base64url')]);
    // What a layer shows may have been decoded further than the secret, where the secret itself has an escape.
    const forms = [...parts, ...encoded].flatMap((form) => [form, fullyDecoded(form, escape)]);
    const found = forms.filter((form) => form.length >= MIN_SECRET_CHARACTERS / 2);
    // The longest first: one secret may be the beginning of another.
    return [escape, [...new Set(found)].sort((a, b) => b.length - a.length)];
  });
}

function fullyDecoded(form: string, escape: RegExp): string {
  let text = form;
  for (let depth = 0; depth < MAX_LAYERS; depth += 1) text = decoded(text, escape);
  return text;
}

/**
 * One escape of JSON or JavaScript (any number of backslashes), of a URL (`%u002b` by IIS), or of HTML. Without their
 * semicolon, HTML's numbers are read as those of visible ASCII characters, whatever digit follows. A form writes a space as `+`.
 */
const ESCAPE =
  /\\+(?:u\{([0-9a-f]{1,8})\}|u([0-9a-f]{4})|x([0-9a-f]{2})|([^\\]))?|%u([0-9a-f]{4})|%([0-9a-f]{2})|&(?:#(\d{1,7});|#x([0-9a-f]{1,6});|#0*(3[3-9]|[4-9]\d|1[01]\d|12[0-6])|#x0*([2-7][0-9a-f])|([a-z]{2,8});)|\+/gi;

/** As a zero-width space. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}+/gu;

/** Quoted-printable (RFC 2045, 6.7) with its soft line breaks too. */
const ESCAPE_OR_MAIL = new RegExp(`${ESCAPE.source}|=(?:([0-9a-f]{2})|\\r?\\n)`, ESCAPE.flags);

/**
 * What follows a key's prefix and underscore (specification, "Authentication") may stand alone, but not every key has one: the
 * whole comes first, and escapes without a mail's: in `?key=ab…` one would take away the beginning of a key.
 */
const PASSES = [String, (secret: string) => secret.slice(secret.indexOf('_') + 1 || secret.length)].flatMap(
  (secretOf) => [ESCAPE, ESCAPE_OR_MAIL].map((escape) => [secretOf, escape] as const),
);

/** HTML's names of the visible ASCII characters that are no letters or digits. */
const HTML_NAMES = new Map(
  [
    ...(
      'excl! quot" num# dollar$ percnt% amp& apos\' lpar( rpar) ast* plus+ comma, period. sol/ colon: semi; lt< equals= ' +
      'gt> quest? commat@ lsqb[ lbrack[ bsol\\ rsqb] rbrack] hat^ lowbar_ grave` lcub{ lbrace{ verbar| vert| rcub} rbrace}'
    ).matchAll(/([a-z]+)(\S)/g),
  ].map(([, name, character]) => [name, character]),
);

/** One layer of escapes less, and no invisible characters. */
function decoded(text: string, escapes: RegExp): string {
  return text.replace(INVISIBLE, '').replace(escapes, (escape: string, ...groups: unknown[]) => {
    // A pattern without the last one has a number there.
    const [braced, unicode, hex, escaped, iis, percent, decimal, hexadecimal, bare, bareHex, name, mail] =
      groups.map((group) => (typeof group === 'string' ? group : undefined));
    if (escape === '+') return ' ';
    if (name !== undefined) return HTML_NAMES.get(name.toLowerCase()) ?? escape;
    const code = braced ?? unicode ?? hex ?? iis ?? percent ?? hexadecimal ?? bareHex ?? mail;
    if (code !== undefined) return oneCharacter(Number.parseInt(code, 16));
    const number = decimal ?? bare;
    return number === undefined ? (escaped ?? '') : oneCharacter(Number(number));
  });
}

/** Keys are ASCII. Any other character goes: it may be an invisible one, or a byte of it. */
function oneCharacter(code: number): string {
  return code < 0x80 ? String.fromCharCode(code) : '';
}
