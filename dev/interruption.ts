/**
 * The wish to end: Ctrl-C, SIGTERM, or the terminal that goes away. The first is heard in `happened`, so that what was
 * started can be ended in order; the second one ends at once.
 */
export class Interruption {
  readonly happened: Promise<void>;
  private heardOnce = false;

  constructor(again: () => void) {
    this.happened = new Promise((resolve) => {
      const heard = () => {
        if (this.heardOnce) again();
        this.heardOnce = true;
        resolve();
      };
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, heard);
    });
  }

  pending(): boolean {
    return this.heardOnce;
  }
}
