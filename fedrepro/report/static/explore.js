// Interactive panels: the library and the data of a figure are loaded when a reader asks for them.
var fedrepro = (function () {
  'use strict';
  var known = {}, loading = {};

  function load(address) {
    loading[address] = loading[address] || new Promise(function (done, failed) {
      var script = document.createElement('script');
      script.src = address;
      script.onload = done;
      script.onerror = function () { failed(new Error(address + ' cannot be loaded')); };
      document.head.appendChild(script);
    });
    return loading[address];
  }
  function make(tag, words, inside) {
    var element = document.createElement(tag);
    if (words) element.textContent = words;
    if (inside) inside.appendChild(element);
    return element;
  }
  function check(words, on, inside, changed) {
    var label = make('label', '', inside), box = make('input', '', label);
    box.type = 'checkbox';
    box.checked = on;
    make('span', words, label);
    box.addEventListener('change', changed);
    return box;
  }
  function dark() { return matchMedia('(prefers-color-scheme: dark)').matches; }
  function ink(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function faint(color, share) { return color + Math.round(255 * share).toString(16).padStart(2, '0'); }

  // The place of a round on another axis of its curve.
  function across(curve, axis, round) {
    var from = curve.x.round, to = curve.x[axis];
    for (var i = 1; i < from.length; i += 1) {
      if (round <= from[i]) {
        var share = (round - from[i - 1]) / (from[i] - from[i - 1]);
        return to[i - 1] + share * (to[i] - to[i - 1]);
      }
    }
    return to[to.length - 1];
  }
  function traces(panel, state, marks) {
    var lines = [], ends = [Infinity, -Infinity];
    panel.curves.forEach(function (c) {
      if (c.level) return;
      c.x[state.axis].forEach(function (v) {
        if (v !== null && (!state.logx || v > 0)) { ends[0] = Math.min(ends[0], v); ends[1] = Math.max(ends[1], v); }
      });
    });
    panel.curves.forEach(function (c, number) {
      if (state.hidden[number]) return;
      var color = c.color[dark() ? 1 : 0], x = c.level ? ends : c.x[state.axis];
      function stretched(y) { return c.level ? [y[0], y[0]] : y; }
      var stroke = {color: color, dash: c.dash, width: 2};
      if (state.band && c.band) {
        lines.push({x: x, y: stretched(c.low), mode: 'lines', line: {width: 0}, hoverinfo: 'skip', showlegend: false});
        lines.push({x: x, y: stretched(c.high), mode: 'lines', line: {width: 0}, fill: 'tonexty', fillcolor: faint(color, 0.16), hoverinfo: 'skip', showlegend: false});
      }
      if (state.trials) {
        c.trials.forEach(function (y, i) {
          lines.push({x: x, y: stretched(y), mode: 'lines', name: c.name + ', trial ' + c.numbers[i], line: {color: faint(color, 0.55), width: 0.9}, showlegend: false});
        });
      }
      lines.push({x: x, y: stretched(c.y), mode: 'lines', name: c.name, line: stroke});
    });
    panel.published.forEach(function (p) {
      var level = !p.x.length;
      lines.push({x: level ? ends : p.x, y: level ? [p.y[0], p.y[0]] : p.y, mode: level ? 'lines' : 'markers', name: p.name,
        marker: {symbol: 'star', size: 10, color: ink('--ink')}, line: {color: ink('--ink'), dash: 'dot', width: 1.2}});
    });
    var shown = marks.filter(function (m) { return !state.hidden[m[0]]; });
    if (shown.length) {
      lines.push({x: shown.map(function (m) { var c = panel.curves[m[0]]; return c.level ? ends[1] : across(c, state.axis, m[1]); }),
        y: shown.map(function (m) { return m[2]; }), text: shown.map(function (m) { return m[3]; }), hoverinfo: 'text', mode: 'markers',
        name: 'read by the check', marker: {symbol: 'circle-open', size: 13, color: dark() ? '#ff80ab' : '#c2185b', line: {width: 2.5}}});
    }
    return lines;
  }
  function draw(place, panel, state, marks) {
    var label = panel.axes.filter(function (a) { return a[0] === state.axis; })[0][1];
    var axis = {gridcolor: ink('--rule'), linecolor: ink('--faint'), zeroline: false, exponentformat: 'power', automargin: true};
    // The first view is that of the printed picture; a double click shows everything.
    var first = panel.limits && state.axis === panel.x && state.logx === (panel.xscale === 'log') && state.logy === (panel.yscale === 'log');
    function along(title, log, limits) {
      var options = Object.assign({}, axis, {title: {text: title}, type: log ? 'log' : 'linear', autorange: !limits});
      if (limits) options.range = log ? limits.map(Math.log10) : limits.slice();
      return options;
    }
    Plotly.react(place, traces(panel, state, marks), {
      paper_bgcolor: ink('--paper'), plot_bgcolor: ink('--paper'), font: {color: ink('--ink'), size: 12, family: 'system-ui, sans-serif'},
      margin: {l: 60, r: 12, t: 12, b: 50}, hovermode: 'closest', legend: {orientation: 'h', y: -0.22},
      xaxis: along(label, state.logx, first && panel.limits[0]), yaxis: along(panel.y, state.logy, first && panel.limits[1]), uirevision: state.axis + state.logx + state.logy
    }, {displaylogo: false, responsive: true, toImageButtonOptions: {format: 'png', scale: 2, filename: state.name}});
  }
  function csv(panel) {
    var names = panel.axes.map(function (a) { return a[0]; }), lines = [['curve'].concat(names, ['trial', 'value'])];
    panel.curves.forEach(function (c) {
      c.trials.forEach(function (y, t) {
        y.forEach(function (v, i) {
          lines.push([c.name].concat(names.map(function (n) { return c.x[n][i]; }), [c.numbers[t], v]));
        });
      });
    });
    return lines.map(function (line) {
      return line.map(function (cell) { return '"' + String(cell === null ? '' : cell).replace(/"/g, '""') + '"'; }).join(',');
    }).join('\n') + '\n';
  }
  function open(box, panel) {
    var marks = JSON.parse(box.dataset.marks || '[]');
    var state = {axis: panel.x, logx: panel.xscale === 'log', logy: panel.yscale === 'log', band: true, trials: false, hidden: {},
      name: (box.dataset.figure + '-' + box.dataset.panel).replace(/[^\w.-]+/g, '-')};
    var controls = make('div', '', box), label = make('label', 'x axis ', controls), choice = make('select', '', label);
    var place;
    controls.className = 'controls';
    function redraw() { draw(place, panel, state, marks); }
    panel.axes.forEach(function (a) { var o = make('option', a[1], choice); o.value = a[0]; });
    choice.value = state.axis;
    choice.addEventListener('change', function () { state.axis = choice.value; redraw(); });
    [['log x', 'logx'], ['log y', 'logy'], ['band', 'band'], ['every trial', 'trials']].forEach(function (option) {
      check(option[0], state[option[1]], controls, function (event) { state[option[1]] = event.target.checked; redraw(); });
    });
    var save = make('button', 'CSV of the trials', controls);
    save.type = 'button';
    save.addEventListener('click', function () {
      var link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob([csv(panel)], {type: 'text/csv'}));
      link.download = state.name + '-trials.csv';
      link.click();
      setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
    });
    place = make('div', '', box);
    place.className = 'plot';
    place.setAttribute('role', 'img');
    place.setAttribute('aria-label', box.dataset.name + ', interactive; its numbers are in a table');
    var curves = make('fieldset', '', box);
    curves.className = 'curves';
    make('legend', 'Curves', curves);
    panel.curves.forEach(function (c, number) {
      var checkbox = check(c.name, true, curves, function (event) { state.hidden[number] = !event.target.checked; redraw(); });
      var swatch = document.createElement('i');
      swatch.style.color = c.color[dark() ? 1 : 0];
      checkbox.after(swatch);
    });
    redraw();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  }
  function offer(box) {
    var button = make('button', 'Explore', box);
    button.type = 'button';
    button.setAttribute('aria-label', 'Explore ' + box.dataset.name + ': zoom, toggle curves, trials, other axes');
    box.hidden = false;
    button.addEventListener('click', function () {
      button.disabled = true;
      button.textContent = 'Loading';
      Promise.all([load(box.dataset.library), load(box.dataset.script)]).then(function () {
        button.remove();
        open(box, known[box.dataset.figure][box.dataset.panel]);
      }, function (error) { button.textContent = error.message; });
    });
  }
  document.querySelectorAll('.explore').forEach(offer);
  return {data: function (name, panels) { known[name] = panels; }};
})();
