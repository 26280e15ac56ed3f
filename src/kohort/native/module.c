/* The module `kohort.native._codec`: three types, made anew for each interpreter. */

#include "codec.h"

typedef struct {
    PyTypeObject *layout_type;
} State;

PyTypeObject *
layout_type_of(PyTypeObject *type)
{
    return ((State *)PyType_GetModuleState(type))->layout_type;
}

static PyTypeObject *
add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type != NULL && PyModule_AddType(module, type) < 0) {
        Py_CLEAR(type);
    }
    return type;
}

static int
fill(PyObject *module)
{
    State *state = PyModule_GetState(module);
    state->layout_type = add_type(module, &layout_spec);
    PyTypeObject *decoder_type = add_type(module, &decoder_spec);
    PyTypeObject *encoder_type = add_type(module, &encoder_spec);
    bool is_whole = state->layout_type != NULL && decoder_type != NULL && encoder_type != NULL;
    Py_XDECREF(decoder_type); /* the module has them */
    Py_XDECREF(encoder_type);
    if (!is_whole) {
        return -1;
    }
    return PyModule_AddIntConstant(module, "REVISION", REVISION);
}

static int
traverse(PyObject *module, visitproc visit, void *arg)
{
    Py_VISIT(((State *)PyModule_GetState(module))->layout_type);
    return 0;
}

static int
clear(PyObject *module)
{
    Py_CLEAR(((State *)PyModule_GetState(module))->layout_type);
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, fill},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_codec",
    .m_doc = "The codec in C, behind kohort.wire.native_codec.",
    .m_size = sizeof(State),
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
};

PyMODINIT_FUNC
PyInit__codec(void)
{
    return PyModuleDef_Init(&definition);
}
