// Server-sent events, read from a fetch: EventSource cannot send the header with the token.

// createParser returns a function that takes pieces of a stream and returns the events that they complete. An event has
// a name, an id or none, and its data; a bookmark has an id only.
export function createParser() {
  let rest = '';
  return (piece) => {
    const events = [];
    const blocks = (rest + piece).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const event = { name: '', id: '', data: '' };
      for (const line of block.split('\n')) {
        const at = line.indexOf(':');
        if (at === 0) continue; // a comment
        const field = at < 0 ? line : line.slice(0, at);
        const value = at < 0 ? '' : line.slice(at + (line[at + 1] === ' ' ? 2 : 1));
        if (field === 'event') event.name = value;
        if (field === 'id') event.id = value;
        if (field === 'data') event.data += (event.data && '\n') + value;
      }
      events.push(event);
    }
    return events;
  };
}
