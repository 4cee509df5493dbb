// Filters and search of find.html, also in the single file. Every page is readable without: it then lists everything.
(function () {
  'use strict';
  window.addEventListener('beforeprint', function () {
    document.querySelectorAll('details').forEach(function (d) { d.open = true; });
  });
  var form = document.querySelector('form.filters');
  if (!form) return;
  var page = form.parentNode, single = page.className === 'page';
  var fields = Array.from(form.elements).filter(function (e) { return e.name; });
  var shows = {};
  page.querySelectorAll('li[data-also]').forEach(function (li) { shows[li.dataset.figure] = li.dataset.also; });
  var items = Array.from(page.querySelectorAll('.listed > li')).map(function (li) {
    return {li: li, text: (li.textContent + ' ' + (shows[li.dataset.figure] || '')).toLowerCase(), claim: 'verdict' in li.dataset};
  });
  var status = page.querySelector('[role="status"]');

  function asked() {
    var all = new URLSearchParams(location.search);
    new URLSearchParams(location.hash.slice(1)).forEach(function (value, key) { all.set(key, value); });
    return all;
  }
  function fits(item, name, value) {
    if (name === 'q') return value.toLowerCase().split(/\s+/).every(function (w) { return item.text.includes(w); });
    if (!item.claim) return false;
    if (name === 'paper' && value === 'papers') return item.li.dataset.total === 'papers';
    return (' ' + item.li.dataset[name] + ' ').includes(' ' + value + ' ');
  }
  function show() {
    var wanted = fields.filter(function (e) { return e.value.trim(); });
    var counts = {claims: 0, others: 0};
    items.forEach(function (item) {
      var fit = wanted.every(function (e) { return fits(item, e.name, e.value.trim()); });
      item.li.hidden = !fit;
      item.li.style.display = fit ? '' : 'none';
      if (fit) counts[item.claim ? 'claims' : 'others'] += 1;
    });
    page.querySelectorAll(':scope > section').forEach(function (section) {
      section.hidden = !section.querySelector('.listed > li:not([hidden])');
    });
    status.textContent = counts.claims + (counts.claims === 1 ? ' claim' : ' claims') +
      (counts.others ? ', and ' + counts.others + ' other' + (counts.others === 1 ? '' : 's') +
        ' (figures, methods, discrepancies)' : '');
  }
  function read() {
    var all = asked();
    fields.forEach(function (e) { e.value = all.get(e.name) || ''; });
    show();
  }
  function keep() {
    if (single) return show();
    var all = new URLSearchParams();
    fields.forEach(function (e) { if (e.value.trim()) all.set(e.name, e.value.trim()); });
    try { history.replaceState(null, '', location.pathname + (all.size ? '#' + all : '')); } catch (e) { /* a file */ }
    show();
  }
  // In the single file, where the hash names a section, links carry their filters themselves.
  document.querySelectorAll('a[data-filter]').forEach(function (link) {
    link.addEventListener('click', function () {
      var wanted = new URLSearchParams(link.dataset.filter);
      fields.forEach(function (e) { e.value = wanted.get(e.name) || ''; });
      show();
    });
  });
  form.hidden = false;
  form.addEventListener('input', keep);
  form.addEventListener('submit', function (event) { event.preventDefault(); });
  form.addEventListener('reset', function () { setTimeout(keep, 0); });
  if (single) return show();
  window.addEventListener('hashchange', read);
  read();
})();
