const [LINE_FEED, CARRIAGE_RETURN, COLON] = [0x0a, 0x0d, 0x3a];
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const DATA = [0x64, 0x61, 0x74, 0x61];

/** What a chunk of the stream brought to its end. */
export interface Scanned {
  readonly lines: number;
  readonly events: number;
}

/**
 * Finds the events in a stream of server-sent events, in whatever pieces it arrives. Lines end with LF, CR or both; an empty line ends
 * an event, which is one only if it has data.
 *
 * Nothing of the stream is kept: a few numbers are all that is remembered, however long a line or an event is.
 */
export class EventScanner {
  /** Of the mark that may stand before the first line: bytes seen; -1 once it cannot come any more. */
  #mark = 0;
  /** Bytes of the present line that spell "data"; -1 for a line that is no data. */
  #spelled = 0;
  #isEmptyLine = true;
  #isDataLine = false;
  #hasData = false;
  #wasCarriageReturn = false;

  scan(chunk: Uint8Array): Scanned {
    let lines = 0;
    let events = 0;
    for (const byte of chunk) {
      const isSecondHalf = byte === LINE_FEED && this.#wasCarriageReturn;
      this.#wasCarriageReturn = byte === CARRIAGE_RETURN;
      if (isSecondHalf || this.#isMark(byte)) continue;
      if (byte !== LINE_FEED && byte !== CARRIAGE_RETURN) {
        this.#read(byte);
        continue;
      }
      lines += 1;
      if (this.#endLine()) events += 1;
    }
    return { lines, events };
  }

  #isMark(byte: number): boolean {
    if (this.#mark < 0) return false;
    const isPart = byte === BYTE_ORDER_MARK[this.#mark];
    // Half a mark is text: of a line that is no data.
    if (!isPart && this.#mark > 0) this.#read(0);
    this.#mark = isPart && this.#mark + 1 < BYTE_ORDER_MARK.length ? this.#mark + 1 : -1;
    return isPart;
  }

  #read(byte: number): void {
    this.#isEmptyLine = false;
    if (this.#spelled < 0) return;
    if (this.#spelled === DATA.length) this.#isDataLine = byte === COLON;
    this.#spelled = byte === DATA[this.#spelled] ? this.#spelled + 1 : -1;
  }

  /** Whether an event ended with it. */
  #endLine(): boolean {
    const isEvent = this.#isEmptyLine && this.#hasData;
    // A line of the name alone is data as well, of an empty line.
    if (this.#isDataLine || this.#spelled === DATA.length) this.#hasData = true;
    if (this.#isEmptyLine) this.#hasData = false;
    this.#spelled = 0;
    this.#isEmptyLine = true;
    this.#isDataLine = false;
    return isEvent;
  }
}
