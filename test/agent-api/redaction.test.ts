import { expect, it, jest } from '@jest/globals';
import { analyse } from 'scslre';
import { Redactor, WITHHELD } from '../../src/agent-api/redaction';
import { seededRandom } from '../../sandbox/random';

const redact = (text: string, ...secrets: string[]) => new Redactor(secrets).redact(text);

type Spelling = (text: string) => string;

const each = (text: string, spell: (character: string) => string) => text.replace(/[ -~]/g, spell);
const special = (text: string, spell: (character: string) => string) =>
  text.replace(/[ -/:-@[-`{-~]/g, spell);
/** Returns an encoding that replaces each special character with its character code between two texts. */
const coded =
  (before: string, radix: 10 | 16, digits = 0, after = ''): Spelling =>
  (text) =>
    special(text, (c) => before + c.charCodeAt(0).toString(radix).padStart(digits, '0') + after);
const NAMES = { '+': 'plus', '/': 'sol', '=': 'equals', _: 'lowbar', '.': 'period' };
const base64 = (text: string) => Buffer.from(text).toString('base64');

/** The escapes that agent services, gateways and their logs use. */
const ESCAPED: Readonly<Record<string, Spelling>> = {
  verbatim: String,
  'as JSON with \\/': (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  'as JSON with codes': coded('\\u', 16, 4),
  'as JSON inside JSON': (text) => JSON.stringify(coded('\\u', 16, 4)(text)),
  'as JavaScript': coded('\\x', 16, 2),
  'as JavaScript with braces': coded('\\u{', 16, 0, '}'),
  'in a URL': encodeURIComponent,
  'in a URL, every character': (text) => each(text, (c) => `%${Buffer.from(c).toString('hex')}`),
  'in a URL of IIS': coded('%u', 16, 4),
  'in a form': (text) => new URLSearchParams({ k: text }).toString().slice(2),
  'in HTML with names': (text) =>
    special(text, (c) => (c in NAMES ? `&${NAMES[c as keyof typeof NAMES]};` : c)),
  'in HTML with decimal numbers': coded('&#', 10, 0, ';'),
  'in HTML with hexadecimal numbers': coded('&#X00', 16, 0, ';'),
};

const SPLIT: Readonly<Record<string, Spelling>> = {
  'with line breaks': (text) => text.replace(/.{7}/g, '$&\r\n'),
  'with escaped line breaks': (text) => text.replace(/.{7}/g, '$&\\r\\n'),
  'with invisible characters': (text) => each(text, (c) => `${c}\u200b\u2060`),
  'with escaped invisible characters': (text) => each(text, (c) => `${c}%E2%80%8B\\u200b&#8203;`),
  'split by punctuation': (text) => text.replace(/.{4}/g, "$&' + '"),
};

const ENCODED = [...Object.entries(ESCAPED), ...Object.entries(SPLIT)];

const KEY = 'agnt_a/b+c=d5e.f~7Gh-8j';
const BODY = KEY.slice(5);

// Proves K3.
it.each(ENCODED)('withholds a text that contains the key %s', (_name, spell) => {
  for (const text of [KEY, BODY])
    expect(redact(`the key '${spell(text)}' may not write`, KEY)).toBe(WITHHELD);
});

// Proves K3.
it.each([0, 1, 2])('withholds a text with the base64 of a text whose key begins after 3n + %i bytes', (n) => {
  const encoded = base64(`${'x'.repeat(n)}${KEY}:`);
  const url = encoded.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
  const lines = encoded.replace(/.{9}/g, '$&\r\n');
  for (const text of [encoded, url, lines, encodeURIComponent(encoded)])
    expect(redact(`Basic ${text}`, KEY)).toBe(WITHHELD);
  expect(redact(base64(`Bearer ${KEY}`), KEY)).toBe(WITHHELD);
});

// Proves K3.
it('withholds a text that contains any bearer token in up to three encodings inside each other', () => {
  const random = seededRandom(20);
  const below = (limit: number) => Math.floor(random() * limit);
  const oneOf = <T>(list: ArrayLike<T>) => list[below(list.length)] as T;
  // The characters of a bearer token (RFC 6750, 2.1).
  const characters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=';
  for (let round = 0; round < 3_000; round += 1) {
    const secret = `k12345678${Array.from({ length: below(60) }, () => oneOf(characters)).join('')}`;
    const outer = Array.from({ length: below(3) }, () => oneOf(Object.entries(ESCAPED)));
    // In a mixture, each character has its own encoding.
    const inner = random() < 0.5 ? each(secret, (c) => oneOf(ENCODED)[1](c)) : oneOf(ENCODED)[1](secret);
    const text = outer.reduce((spelled, [, spell]) => spell(spelled), inner);
    const names = outer.map(([name]) => name).join(', ');
    expect({ secret, names, text, shown: redact(text, secret) }).toMatchObject({ shown: WITHHELD });
  }
});

it('shows a text that does not contain the key', () => {
  const texts = [
    '',
    'nothing here',
    '100 % of \\n &amp; &nope; + %zz',
    '\\',
    '%',
    '&',
    KEY.slice(0, -1),
    'agnt_',
  ];
  for (const text of texts) expect(redact(text, KEY)).toBe(text);
});

it('does not withhold a text for a secret with fewer than eight letters and digits, because ordinary words can contain such a secret', () => {
  for (const secret of ['', 'a', 'agnt_ab', '--------a', 'product'])
    expect(redact('a product at agnt_ab', secret)).toBe('a product at agnt_ab');
  expect(redact('a product8 at', 'product8')).toBe(WITHHELD);
});

it('withholds a text with a key whose body is short only if the text also has the prefix of the key', () => {
  expect(redact('the-word', 'agnt_word')).toBe('the-word');
  expect(redact('agnt word', 'agnt_word')).toBe(WITHHELD);
});

it('withholds a text that contains a key from before a rotation', () => {
  const redactor = new Redactor();
  for (const key of ['the-first-key', 'the-second-key']) redactor.addKey(key);
  for (const text of ['the-first-key', 'the-second-key']) expect(redactor.redact(text)).toBe(WITHHELD);
});

it('replaces any token after Bearer', () => {
  expect(redact('sent "Bearer xyz", rejected')).toBe('sent "Bearer [redacted]", rejected');
});

it('limits a text to 8,192 characters, and withholds a text with a key across this limit', () => {
  const text = 'x'.repeat(8_180);
  expect(redact(`${text}${'y'.repeat(100)}`, KEY)).toBe(`${text}${'y'.repeat(11)}…`);
  expect(redact(`${text}${encodeURIComponent(KEY)}`, KEY)).toBe(WITHHELD);
  expect(redact(`${'x'.repeat(70_000)}${KEY}`, KEY)).toBe(`${'x'.repeat(8_191)}…`);
});

it.each([
  [
    'the rest of the key is after the examined part',
    `${'x'.repeat(100)}${BODY.slice(0, 14)}${' '.repeat(70_000)}${BODY.slice(14)}`,
  ],
  ['the key ends at the end of the examined part', `${'x'.repeat(65_536 - 15)}${BODY}`],
  [
    'an escape of the key is cut',
    `${'x'.repeat(100)}${each(BODY, (c) => `%${Buffer.from(c).toString('hex')}${' '.repeat(5_000)}`)}`,
  ],
])(
  'withholds a text that is longer than the examined part and has the beginning of the key, if %s',
  (_, text) => {
    expect(text.length).toBeGreaterThan(65_536);
    expect(redact(text, KEY)).toBe(WITHHELD);
  },
);

it('examines at most 65,536 characters of a text, with patterns that take linear time', () => {
  const redactor = new Redactor([KEY]);
  const spy = jest.spyOn(
    RegExp.prototype as unknown as Record<symbol, (text: string) => string>,
    Symbol.replace,
  );
  for (const piece of ['\\/', '%25', 'amp;', '&#38;']) redactor.redact(`%&${piece.repeat(1_000_000)}`);
  const lengths = spy.mock.calls.map(([text]) => text.length);
  const patterns = new Set(spy.mock.contexts as unknown as RegExp[]);
  spy.mockRestore();
  expect(Math.max(...lengths)).toBe(65_536);
  expect(lengths.length).toBeLessThan(50);
  for (const pattern of patterns) expect(analyse(pattern).reports).toEqual([]);
});
