// A library to be opened and closed; built twice, so that one can take the other's place.
extern "C" int plugin_function(int value) { return value + CADASTRE_PLUGIN_NUMBER; }
