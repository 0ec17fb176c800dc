import { describe, expect, it } from '@jest/globals';
import { bodyOf } from '../../src/agent-api/exchange';
import { JOB } from '../harness/samples';
import { readJob } from '../../src/agent-api/outcome';

const AS_IT_IS = { text: String, field: String };

function read(job: unknown) {
  return readJob(bodyOf(JSON.stringify(job), AS_IT_IS));
}

describe('readJob', () => {
  it('takes the contract’s fields and drops the others', () => {
    const job = {
      id: 'j',
      status: 'completed',
      source: { repository: 'acme/docs', ref: 'main', token: 'x' },
      model: 'large',
      prLink: 'https://code.example/acme/docs/pull/7',
      createdAt: '2026-01-01T00:00:00Z',
      archivedAt: '2026-01-02T00:00:00Z',
    };
    expect(read({ ...job, turn: 3 })).toEqual({ ...job, source: { repository: 'acme/docs', ref: 'main' } });
  });

  it.each([
    ['absent', {}],
    ['null', { source: null, model: null, prLink: null, createdAt: null, archivedAt: null }],
    ['of another type', { source: 'acme', model: 7, prLink: {}, createdAt: 0, archivedAt: false }],
    ['half there', { source: { repository: 5 } }],
    ['empty in the link', { prLink: '' }],
  ])('reads fields that are %s as null', (_what, fields) => {
    expect(read({ id: 'j', status: 'active', ...fields })).toEqual(JOB);
  });

  it.each([
    ['no id', { status: 'active' }],
    ['a number as id', { id: 1, status: 'active' }],
    ['no status', { id: 'j' }],
    ['null as status', { id: 'j', status: null }],
    ['an array', [{ id: 'j', status: 'active' }]],
  ])('finds no job in %s', (_what, value) => {
    expect(read(value)).toBeUndefined();
  });

  it.each(['', '<html>', '{"id":"j","status":"active"', '['.repeat(500_000)])(
    'finds none in text',
    (body) => {
      expect(readJob(bodyOf(body, AS_IT_IS))).toBeUndefined();
    },
  );

  it.each([
    'javascript:alert(1)',
    'ftp://code.example/x',
    '//code.example/x',
    'https://code.example/a\nb',
    `https://code.example/${'x'.repeat(2_048)}`,
  ])('leaves out a link that is not one, or too long: %j', (prLink) => {
    expect(read({ id: 'j', status: 'active', prLink })).toEqual(JOB);
  });

  it.each(['http://127.0.0.1:4010/pull/1', 'HTTPS://code.example/ä?b=c#d'])('keeps the link %j', (prLink) => {
    expect(read({ id: 'j', status: 'active', prLink: ` ${prLink}\n` })?.prLink).toBe(prLink);
  });

  it('bounds a status to 64 characters, any other text to 1,024, and keeps the id, which is compared', () => {
    const long = 'x'.repeat(5_000);
    const job = read({ id: long, status: long, model: long, source: { ref: long }, createdAt: long });
    expect(job?.id).toBe(long);
    expect(job?.status).toHaveLength(64);
    expect([job?.model, job?.source.ref, job?.createdAt].map((text) => text?.length)).toEqual([
      1_024, 1_024, 1_024,
    ]);
  });
});
