import { stripVTControlCharacters } from 'node:util';
import { runInNewContext } from 'node:vm';
import { expect, it } from '@jest/globals';
import { Redactor, WITHHELD } from '../../src/agent-api/redaction';
import type { LogLevelName } from '../../src/worker/variables';
import { createLogger, type LogDestination } from '../../src/worker/logging';

const KEY = 'svc_5e0d/7b"1a\\c4';

/** Creates a logger that writes to a list. */
function recorder(level: LogLevelName = 'info', isTTY = false) {
  const written: string[] = [];
  const destination: LogDestination = { isTTY, write: (line) => written.push(line) };
  const logger = createLogger(level, new Redactor([KEY]), destination);
  const records = () => written.map((line) => JSON.parse(line) as Record<string, unknown>);
  return { logger, written, records };
}

it('logs one JSON object per line, and renames the fields of a record that have the name of a logger field', () => {
  const { logger, records, written } = recorder();
  logger.warn('poll failed', { workflowId: 'follow-up:p:j:r', msg: 'theirs', level: 7, time: 'noon' });
  expect(written.join('')).toMatch(/^[^\n]+\n$/);
  expect(written.join('').match(/"msg":/g)).toHaveLength(1);
  const loggerFields = { level: 'warn', msg: 'poll failed', pid: process.pid };
  const recordFields = { workflowId: 'follow-up:p:j:r', msg_: 'theirs', level_: 7, time_: 'noon' };
  expect(records()).toMatchObject([
    { ...loggerFields, ...recordFields, time: expect.stringMatching(/^\d{4}-\d\d-.*Z$/) },
  ]);
});

it('logs errors with stack and causes, and no text that contains the key', () => {
  const { logger, written, records } = recorder();
  const cause = Object.assign(new Error(`rejected ${KEY}`), { headers: { note: `Bearer ${KEY}` } });
  logger.error(`with ${KEY}`, {
    error: new Error(`outer ${KEY}`, { cause }),
    nested: { list: [`a ${KEY}`], map: new Map([['k', KEY]]), [`name ${KEY}`]: 1, ['n'.repeat(300)]: 2 },
    url: new URL(`http://localhost/${encodeURIComponent(KEY)}`),
    json: JSON.stringify({ KEY }),
    base64: Buffer.from(KEY).toString('base64'),
    // Errors from the workflow sandbox also belong to another realm.
    foreign: runInNewContext('new Error("foreign", { cause: new TypeError("inner") })') as unknown,
    // The redactor does not know these secrets.
    headers: { Authorization: 'xyz', apiKey: 'xyz', note: 'Bearer abcdef123' },
  });
  const all = written.join('');
  const stack = expect.stringContaining('evalmachine');
  expect(records()).toMatchObject([
    {
      msg: WITHHELD,
      error: { message: WITHHELD, cause: { message: WITHHELD } },
      nested: { list: [WITHHELD], [WITHHELD]: 1, '[omitted: the record is too large]': 2 },
      foreign: { message: 'foreign', stack, cause: { type: 'TypeError' } },
    },
  ]);
  expect(all).not.toMatch(/5e0d|xyz|abcdef123/);
  expect(all).not.toContain(Buffer.from(KEY).toString('base64'));
});

it('omits binary data, truncates long texts and records, and never leaves part of a key after truncation', () => {
  const { logger, written, records } = recorder();
  const bytes = { array: new Uint8Array(3), buffer: Buffer.from(KEY) };
  logger.info('odd', { bytes, long: 'x'.repeat(100_000) });
  const list = Array.from({ length: 1_000 }, () => `a text with ${KEY} in it`);
  logger.info('dumped', { lists: Array.from({ length: 10 }, () => list) });
  expect(records()).toMatchObject([
    { bytes: { array: '[bytes]', buffer: '[bytes]' }, long: expect.stringMatching(/^x{8191}…$/) },
    { level: 'info', msg: 'dumped', cut: expect.stringContaining(`"${WITHHELD}"`) },
  ]);
  for (const line of written) expect(line.length).toBeLessThan(12_000);
  expect(written.join('')).not.toContain('5e0d');
});

it('examines at most 262,144 characters of a record, and omits the remaining texts as a whole', () => {
  const written: string[] = [];
  let examined = 0;
  const { redact } = new Redactor([KEY]);
  const counting = {
    redact: (text: string) => {
      examined += Math.min(text.length, 65_536);
      return redact(text);
    },
  };
  const logger = createLogger('info', counting, { write: (line) => written.push(line) });
  const texts = (count: number, text: string) => Array.from({ length: count }, () => text);
  logger.info('large', { note: 'kept', texts: texts(100, 'x'.repeat(10_000)), words: texts(1_000_000, 'y') });
  expect(examined).toBeLessThanOrEqual(262_144 + 'large'.length);
  expect(written.join('')).toContain('"note\\":\\"kept');
  written.length = 0;
  logger.info('small', { texts: texts(3, 'x'.repeat(10_000_000)) });
  expect(written.join('')).toContain('x'.repeat(8_000));
  logger.info('many', { numbers: texts(1_000_000, '').map((_, index) => index) });
  expect(written.at(-1)?.length).toBeLessThan(20_000);
});

it('logs a record that contains itself, a bigint, or a value that can’t be serialized', () => {
  const { logger, records } = recorder();
  const circular: Record<string, unknown> = { name: 'outer' };
  circular.inner = { circular };
  const list: unknown[] = ['first'];
  list.push(list);
  logger.info('circular', { circular, list, count: 7n });
  logger.info('failing', {
    value: {
      toJSON: () => {
        throw new Error(`no JSON for ${KEY}`);
      },
    },
  });
  expect(records()).toMatchObject([
    {
      msg: 'circular',
      circular: { name: 'outer', inner: { circular: '[circular]' } },
      list: ['first', '[circular]'],
      count: '7',
    },
    { msg: 'failing', fields: expect.stringContaining(WITHHELD) },
  ]);
});

it.each([
  ['info', ['Task polling', 'the workflow has started']],
  ['debug', ['Worker state', 'No workflows', 'Task polling', 'the workflow has started']],
] as const)(
  'the level %s logs these lines, because unimportant lines of the SDK have the level debug: %j',
  (level, messages) => {
    const { logger, records } = recorder(level);
    logger.info('Worker state changed', { sdkComponent: 'worker', state: 'RUNNING' });
    logger.warn('No workflows registered, not polling for workflow tasks', { sdkComponent: 'worker' });
    logger.warn('Task polling has encountered errors', { sdkComponent: 'core' });
    logger.info('the workflow has started', { sdkComponent: 'workflow' });
    expect(records()).toMatchObject(
      messages.map((message) => ({ msg: expect.stringMatching(`^${message}`) })),
    );
  },
);

const FAILED = { error: new Error('the agent service has no such job', { cause: new Error('http 404') }) };

it.each([
  ['Workflow failed', { workflowType: 'followUp' }, 'info'],
  ['Workflow failed', { workflowType: 'followUpBatch' }, 'info'],
  ['Workflow failed', { workflowType: 'followUpNotification' }, 'warn'],
  ['Activity failed', { activityType: 'postNotification' }, 'warn'],
])(
  'logs an expected failure (%s, %j) as one line of the level %s, without a stack',
  (message, type, level) => {
    const { logger, records } = recorder();
    logger.warn(message, { ...FAILED, ...type, workflowId: 'w', sdkComponent: 'worker' });
    const msg = `${message}: the agent service has no such job: http 404`;
    expect(records()).toMatchObject([{ msg, level, ...type, workflowId: 'w' }]);
    expect(records()[0]).not.toHaveProperty('error');
  },
);

it.each([
  ['Workflow failed', { workflowType: 'workflowOfATeam' }],
  ['Activity failed', { activityType: 'getJob' }],
  ['Failing workflow task', { workflowType: 'followUp' }],
])('logs any other failure (%s, %j) as a warning with its stack', (message, type) => {
  const { logger, records } = recorder();
  logger.warn(message, { ...FAILED, ...type, sdkComponent: 'worker' });
  const error = { message: FAILED.error.message, stack: expect.stringContaining('logging.test') };
  expect(records()).toMatchObject([{ msg: message, level: 'warn', error }]);
});

it('on a terminal, a record is one readable line without control sequences', () => {
  const { logger, written } = recorder('info', true);
  logger.info('poll \u001b[2J\u0007done', { workflowId: 'w', taskToken: 'abc', answer: 'a\u001b]0;x' });
  const line = stripVTControlCharacters(written.join(''));
  expect(line).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: poll .*done {"workflowId":"w",.*}\n$/);
  expect(line).toContain('poll  [2J done');
  expect(line).not.toContain('taskToken');
});
