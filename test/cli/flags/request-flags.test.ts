import { describe, expect, it } from '@jest/globals';
import { Command } from 'commander';
import { addLineFlags, addRequestFlags } from '../../../src/cli/flags/request-flags';
import { REQUEST_OPTIONS, type RequestOption } from '../../../src/core/request';

describe('the flags of a request', () => {
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
