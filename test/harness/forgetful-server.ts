import { type DevServer, startDevServer } from '../../dev/dev-server';
import { temporal } from './temporal';

/**
 * Settings with which a server deletes a closed workflow within seconds. By default it waits until its queues have noted
 * the end, which they do every half a minute.
 */
export const FORGETFUL = {
  'history.transferProcessorUpdateAckInterval': '500ms',
  'history.visibilityProcessorUpdateAckInterval': '500ms',
  'history.timerProcessorUpdateAckInterval': '500ms',
} as const;

/** A dev server of its own with these settings. */
export function startForgetfulServer(
  dynamicConfig: Readonly<Record<string, string | number>> = {},
): Promise<DevServer> {
  return startDevServer({
    cli: temporal().cli,
    searchAttributes: true,
    dynamicConfig: { ...FORGETFUL, ...dynamicConfig },
  });
}
