// Templates without a compiler. Text in them is always escaped: Preact creates text nodes, and nothing here sets HTML.
import htm from 'htm';
import { h } from 'preact';

export const html = htm.bind(h);
