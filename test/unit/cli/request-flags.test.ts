import { describe, expect, it } from '@jest/globals';
import { Command } from 'commander';
import {
  addLineFlags,
  addRequestFlags,
  FLAG_OF_FIELD,
  requestOfFlags,
} from '../../../src/cli/flags/request-flags';
import { checkRequest } from '../../../src/core/check-request';
import { problemText } from '../../../src/core/problem';
import { REQUEST_OPTIONS, type RequestOption } from '../../../src/core/request-options';

function problemsOf(flags: Parameters<typeof requestOfFlags>[0], prompt?: string): string[] {
  const checked = checkRequest(requestOfFlags(flags, prompt, 'r'));
  return checked.ok ? [] : checked.problems.map((problem) => problemText(problem, FLAG_OF_FIELD));
}

describe('the flags of a request', () => {
  it('make a request with every field', () => {
    const request = requestOfFlags(
      {
        project: 'p',
        job: 'j',
        whenActive: 'wait',
        onUnknownDelivery: 'ask',
        deadline: '2h',
        reconcile: '1m',
        settle: '5s',
        confirm: '10s',
        pollingInitial: '1s',
        pollingGrowth: '0.5',
        pollingMaximum: '1m',
        pollingJitter: '0',
        pollingTimerPolls: 'all',
      },
      'Hello',
      'r',
    );
    expect(request).toEqual({
      projectId: 'p',
      jobId: 'j',
      prompt: 'Hello',
      requestId: 'r',
      whenActive: 'wait',
      onUnknownDelivery: 'ask',
      deadline: '2h',
      reconcile: '1m',
      settle: '5s',
      confirm: '10s',
      polling: { initial: '1s', growth: 0.5, maximum: '1m', jitter: 0, timerPolls: 'all' },
    });
    expect(checkRequest(request).ok).toBe(true);
  });

  it('leave out what was not given, so that the defaults of the worker hold', () => {
    expect(requestOfFlags({ project: 'p', job: 'j' }, 'x', 'r')).toEqual({
      projectId: 'p',
      jobId: 'j',
      prompt: 'x',
      requestId: 'r',
    });
  });

  it.each(Object.entries<RequestOption>(REQUEST_OPTIONS))(
    'exist for %s, with help and default',
    (field, option) => {
      const flag = '--' + field.replace('.', '-').replace(/[A-Z]/g, (letter) => '-' + letter.toLowerCase());
      expect(optionOf(addRequestFlags(new Command()), flag)).toContain(`(default: ${option.default})`);
      expect(optionOf(addRequestFlags(new Command()), flag)).toContain(option.help.replaceAll('`', ''));
    },
  );

  it('of a batch have the defaults of a batch', () => {
    expect(optionOf(addLineFlags(new Command()), '--polling-initial')).toContain('(default: 30s)');
  });
});

function optionOf(command: Command, flag: string): string {
  return command.options.find(({ long }) => long === flag)?.description ?? '';
}

describe('problems', () => {
  it('name the flag, all at once', () => {
    expect(problemsOf({ project: '.', deadline: '30', pollingGrowth: 'much' }, '')).toEqual([
      expect.stringMatching(/^--project: must not be "\."/),
      '--job: is missing',
      expect.stringMatching(/^--prompt or --prompt-file: must not be empty/),
      expect.stringMatching(/^--deadline: "30" needs a unit/),
      expect.stringMatching(/^--polling-growth: must be a number from 0 to 10; it is "much"/),
    ]);
  });

  it('of a missing prompt name both ways to give one', () => {
    expect(problemsOf({ project: 'p', job: 'j' })).toEqual(['--prompt or --prompt-file: is missing']);
  });

  it('leave the values alone', () => {
    expect(problemsOf({ project: 'p', job: 'j', whenActive: 'projectId' }, 'x')).toEqual([
      '--when-active: must be one of send, wait, reject; it is "projectId"',
    ]);
  });
});
